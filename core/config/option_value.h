/* SPDX-License-Identifier: Apache-2.0
 *
 * One value of one option: checked against its type and range, stored in its field.
 */
#ifndef WB_CONFIG_OPTION_VALUE_H
#define WB_CONFIG_OPTION_VALUE_H

#include "core/config/option.h"

/** Parse `node` as `option` wants it, into `field`. On an error a problem is added and
 *  the field is left as it is. */
void wb_option_value_parse(const wb_option_scope *scope, const wb_option *option,
                           const wb_conf_node *node, void *field);

/** Fill `field` with the default, or with zero where there is none. The table's text is what a user
 *  would write, without the quotes around a single value: `5672`, `true`, `10s`, `quorum`, `["a", "b"]`.
 *  It means the same everywhere: it names no environment variable and no file. What is wrong with it
 *  becomes a problem at `at`, and the field is zero. */
void wb_option_default_parse(const wb_option_scope *scope, const wb_option *option, wb_conf_origin at,
                             void *field);

#endif
