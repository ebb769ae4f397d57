/* SPDX-License-Identifier: Apache-2.0
 *
 * A shared object that is no handler module.
 */
#include <waybill/handler.h>

WB_EXPORT int waybill_tests_nothing(void);

int waybill_tests_nothing(void)
{
    return 0;
}
