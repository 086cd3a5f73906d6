/* A fuzz target without libFuzzer: its seeds, mutated the same way each time.  With a
 * file as the argument, that input alone; with "-s DIRECTORY", the seeds as files. */
#include <string.h>

#include "fuzz.h"

#define ROUNDS 3000
#define ROOM   4096

static uint64_t state = 88172645463325252ull;

static uint64_t next_random(void)
{
    state ^= state << 13;
    state ^= state >> 7;
    state ^= state << 17;
    return state;
}

/* Digits, signs and JSON's own characters get a parser further than any byte does. */
static uint8_t some_byte(void)
{
    static const char likely[] = "0123456789.%-{}[]\":,/ \\ueE\n";
    uint64_t r = next_random();
    return r % 4 ? (uint8_t)likely[r / 4 % (sizeof likely - 1)] : (uint8_t)(r >> 8);
}

static size_t mutate(uint8_t *data, size_t size)
{
    for (uint64_t n = 1 + next_random() % 4; n > 0; n--) {
        size_t at = size ? next_random() % size : 0;
        switch (next_random() % 5) {
        case 0: /* another byte */
            if (size)
                data[at] = some_byte();
            break;
        case 1: /* one more */
            if (size < ROOM) {
                memmove(data + at + 1, data + at, size - at);
                data[at] = some_byte();
                size++;
            }
            break;
        case 2: /* one less */
            if (size) {
                memmove(data + at, data + at + 1, size - at - 1);
                size--;
            }
            break;
        case 3: /* cut */
            size = at;
            break;
        default: /* the part again */
            if (size && size - at <= ROOM - size) {
                memcpy(data + size, data + at, size - at);
                size += size - at;
            }
        }
    }
    return size;
}

static int play(const char *path)
{
    static uint8_t data[1 << 20];
    FILE *f = fopen(path, "rb");
    if (!f) {
        perror(path);
        return 1;
    }
    size_t size = fread(data, 1, sizeof data, f);
    fclose(f);
    return LLVMFuzzerTestOneInput(data, size);
}

static int write_seeds(const char *dir)
{
    for (unsigned i = 0; fuzz_seeds[i]; i++) {
        char path[300];
        snprintf(path, sizeof path, "%s/seed-%u", dir, i);
        FILE *f = fopen(path, "wb");
        if (!f || fputs(fuzz_seeds[i], f) < 0 || fclose(f) != 0)
            return 1;
    }
    return 0;
}

int main(int argc, char **argv)
{
    static uint8_t data[ROOM + 1];
    unsigned seeds = 0;
    if (argc > 2 && !strcmp(argv[1], "-s"))
        return write_seeds(argv[2]);
    if (argc > 1)
        return play(argv[1]);
    for (; fuzz_seeds[seeds]; seeds++) {
        size_t size = strlen(fuzz_seeds[seeds]);
        LLVMFuzzerTestOneInput((const uint8_t *)fuzz_seeds[seeds], size);
        for (int i = 0; i < ROUNDS; i++) {
            memcpy(data, fuzz_seeds[seeds], size);
            LLVMFuzzerTestOneInput(data, mutate(data, size));
        }
    }
    printf("%u passed, 0 failed\n", seeds);
    return 0;
}
