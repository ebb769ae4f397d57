/* SPDX-License-Identifier: Apache-2.0 */
#include "config.h"

#include "tests/simulation/random.h"

static uint64_t state;

void sim_random_start(uint64_t seed)
{
    state = seed;
}

/* splitmix64: neighbouring seeds have nothing in common. */
uint64_t sim_random_bits(void)
{
    uint64_t z = (state += UINT64_C(0x9e3779b97f4a7c15));
    z = (z ^ z >> 30) * UINT64_C(0xbf58476d1ce4e5b9);
    z = (z ^ z >> 27) * UINT64_C(0x94d049bb133111eb);
    return z ^ z >> 31;
}

unsigned sim_random(unsigned limit)
{
    return (unsigned)((sim_random_bits() >> 32) * limit >> 32);
}

int sim_chance(unsigned percent)
{
    return sim_random(100) < percent;
}

int64_t sim_random_between(int64_t low, int64_t high)
{
    return low + (int64_t)(sim_random_bits() % (uint64_t)(high - low + 1));
}
