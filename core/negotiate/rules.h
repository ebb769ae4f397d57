/* SPDX-License-Identifier: Apache-2.0
 *
 * The rules of the negotiation, each a predicate of its own, and the sentence for each.
 */
#ifndef WB_NEGOTIATE_RULES_H
#define WB_NEGOTIATE_RULES_H

#include "core/negotiate/negotiate.h"

/** Whether the rule of a kind is broken. WB_CONFLICT_SEND_ONLY_SETTING is broken once for
 *  each input setting; the others once. */
int wb_rule_is_broken(const wb_negotiation_input *input, int kind);

/** The modes (bit m) that the transport offers and that would remove the conflict, without
 *  causing another if there are such. */
uint32_t wb_rule_modes(const wb_negotiation_input *input, int kind);

/** Who delays messages under the mode asked: WB_DELAYS_BY_x. */
int32_t wb_rule_delay_by(const wb_negotiation_input *input);

/** Whether both plugins name the same resource and can share its transaction. */
int wb_rule_is_shared(const wb_negotiation_input *input);

/** Fill place and text of a conflict whose kind and modes are set. `index` is that of the
 *  input setting for WB_CONFLICT_SEND_ONLY_SETTING. */
void wb_rule_describe(const wb_negotiation_input *input, size_t index, wb_conflict *conflict);

#endif
