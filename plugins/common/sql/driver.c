/* SPDX-License-Identifier: Apache-2.0 */
#include "config.h"

#include "plugins/common/sql/driver.h"

int wb_sql_is_listed(const wb_sql_value *list, size_t i)
{
    if (list->kind == WB_SQL_UNSETTLED_KEYS)
        return ((const wb_claim *)list->data)[i].duplicate_of == WB_SQL_UNSETTLED;
    if (list->kind == WB_SQL_GONE_BATCHES)
        return !((const wb_mark *)list->data)[i].remaining;
    return 1;
}

size_t wb_sql_count_listed(const wb_sql_value *list)
{
    size_t count = 0;
    for (size_t i = 0; i < list->size; i++)
        count += (size_t)wb_sql_is_listed(list, i);
    return count;
}

wb_sql_key wb_sql_listed_key(const wb_sql_value *list, size_t i,
                             unsigned char room[WB_SQL_KEY_ROOM])
{
    const wb_claim *claim = (const wb_claim *)list->data + i;
    return list->compact ? wb_sql_key_exchange(claim->id, claim->id_size, room)
                         : (wb_sql_key){ claim->id, claim->id_size };
}
