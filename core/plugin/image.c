/* SPDX-License-Identifier: Apache-2.0 */
#include "config.h"

#include "core/plugin/image.h"

#include <fcntl.h>
#include <inttypes.h>
#include <link.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#if __BYTE_ORDER__ == __ORDER_LITTLE_ENDIAN__
#define OUR_ORDER ELFDATA2LSB
#else
#define OUR_ORDER ELFDATA2MSB
#endif
#define OUR_CLASS (sizeof(void *) == 8 ? ELFCLASS64 : ELFCLASS32)

/* A file that is mapped to be read; `data` NULL: it is empty, or cannot be. */
typedef struct {
    const char *data;
    size_t size;
} image;

static image map(const char *path)
{
    image file = { NULL, 0 };
    struct stat st;
    int fd = open(path, O_RDONLY | O_CLOEXEC);
    if (fd < 0)
        return file;
    if (fstat(fd, &st) == 0 && st.st_size > 0) {
        void *data = mmap(NULL, (size_t)st.st_size, PROT_READ, MAP_PRIVATE, fd, 0);
        if (data != MAP_FAILED)
            file = (image){ data, (size_t)st.st_size };
    }
    (void)close(fd);
    return file;
}

static void unmap(image file)
{
    if (file.data)
        (void)munmap((void *)(uintptr_t)file.data, file.size);
}

static int is_ours(const image *file, const ElfW(Ehdr) *header)
{
    return file->size >= sizeof *header && memcmp(header->e_ident, ELFMAG, SELFMAG) == 0 &&
           header->e_ident[EI_CLASS] == OUR_CLASS && header->e_ident[EI_DATA] == OUR_ORDER &&
           header->e_phentsize == sizeof(ElfW(Phdr));
}

static uint64_t later(uint64_t end, uint64_t start, uint64_t size)
{
    if (size > UINT64_MAX - start)
        return UINT64_MAX;
    return start + size > end ? start + size : end;
}

/* Where the last byte that is mapped lies, as far as the headers that are there say. */
static uint64_t end_of(const image *file, const ElfW(Ehdr) *header)
{
    uint64_t end = later(0, header->e_phoff, (uint64_t)header->e_phnum * sizeof(ElfW(Phdr)));
    if (end > file->size)
        return end;
    for (size_t i = 0; i < header->e_phnum; i++) {
        ElfW(Phdr) segment;
        memcpy(&segment, file->data + header->e_phoff + i * sizeof segment, sizeof segment);
        if (segment.p_type == PT_LOAD)
            end = later(end, segment.p_offset, segment.p_filesz);
    }
    return end;
}

const char *wb_image_fault(const char *path, char text[WB_IMAGE_FAULT_SIZE])
{
    image file = map(path);
    ElfW(Ehdr) header = { .e_phnum = 0 };
    const char *fault = NULL;

    if (file.size >= sizeof header)
        memcpy(&header, file.data, sizeof header);
    uint64_t end = is_ours(&file, &header) ? end_of(&file, &header) : 0;
    if (end > file.size) {
        (void)snprintf(text, WB_IMAGE_FAULT_SIZE,
                       "the file is cut short: it has %zu bytes, by its headers at least %" PRIu64 "; copy it again",
                       file.size, end);
        fault = text;
    }
    unmap(file);
    return fault;
}

int wb_image_holds(const char *path, const char *text)
{
    image file = map(path);
    int holds = file.data && memmem(file.data, file.size, text, strlen(text)) != NULL;
    unmap(file);
    return holds;
}
