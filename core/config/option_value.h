/* SPDX-License-Identifier: Apache-2.0
 *
 * One value of one option: checked against its type and range, stored in its field.
 */
#ifndef WB_CONFIG_OPTION_VALUE_H
#define WB_CONFIG_OPTION_VALUE_H

#include "core/config/option.h"

/** Parse `node` as `option` wants it, into `field`. On an error a problem is added and
 *  the field is left as it is. `is_default` says that the text is the table's, not the
 *  user's: numbers come as strings then, and a literal secret is no warning. */
void wb_option_value_parse(const wb_option_scope *scope, const wb_option *option,
                           const wb_conf_node *node, int is_default, void *field);

#endif
