/* Lies to a broker about its disk and its clock, for ./dev soak faults.
 *
 * The file that HEADGATE_PRELOAD names is read again at each call and says what to do, a word and a
 * number in each line:
 *   sync_delay_ms N   fdatasync takes N ms longer
 *   sync_error N      fdatasync fails with errno N
 *   write_error N     writes to files, and the reservation of room, fail with errno N
 *   clock_shift_s N   the wall clock is N seconds ahead
 * Only regular files count; a missing file or word means nothing. */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/time.h>
#include <sys/uio.h>
#include <time.h>
#include <unistd.h>

static long order(const char *word) {
    const char *path = getenv("HEADGATE_PRELOAD");
    char name[64];
    long value, found = 0;
    int saved = errno;
    FILE *file = path == NULL ? NULL : fopen(path, "re");
    if (file != NULL) {
        while (fscanf(file, "%63s %ld", name, &value) == 2)
            if (strcmp(name, word) == 0) found = value;
        fclose(file);
    }
    errno = saved;
    return found;
}

static int is_regular(int fd) {
    struct stat status;
    return fstat(fd, &status) == 0 && S_ISREG(status.st_mode);
}

static int fails(int fd, const char *word) {
    long number = is_regular(fd) ? order(word) : 0;
    if (number != 0) errno = (int)number;
    return number != 0;
}

int fdatasync(int fd) {
    int (*real)(int) = dlsym(RTLD_NEXT, "fdatasync");
    long delay_ms = order("sync_delay_ms");
    if (delay_ms > 0) usleep((useconds_t)delay_ms * 1000);
    return fails(fd, "sync_error") ? -1 : real(fd);
}

ssize_t pwrite(int fd, const void *data, size_t size, off_t at) {
    ssize_t (*real)(int, const void *, size_t, off_t) = dlsym(RTLD_NEXT, "pwrite");
    return fails(fd, "write_error") ? -1 : real(fd, data, size, at);
}

ssize_t pwrite64(int fd, const void *data, size_t size, off64_t at) {
    ssize_t (*real)(int, const void *, size_t, off64_t) = dlsym(RTLD_NEXT, "pwrite64");
    return fails(fd, "write_error") ? -1 : real(fd, data, size, at);
}

ssize_t pwritev(int fd, const struct iovec *parts, int count, off_t at) {
    ssize_t (*real)(int, const struct iovec *, int, off_t) = dlsym(RTLD_NEXT, "pwritev");
    return fails(fd, "write_error") ? -1 : real(fd, parts, count, at);
}

ssize_t pwritev64(int fd, const struct iovec *parts, int count, off64_t at) {
    ssize_t (*real)(int, const struct iovec *, int, off64_t) = dlsym(RTLD_NEXT, "pwritev64");
    return fails(fd, "write_error") ? -1 : real(fd, parts, count, at);
}

int posix_fallocate(int fd, off_t at, off_t size) {
    int (*real)(int, off_t, off_t) = dlsym(RTLD_NEXT, "posix_fallocate");
    return fails(fd, "write_error") ? errno : real(fd, at, size);
}

int posix_fallocate64(int fd, off64_t at, off64_t size) {
    int (*real)(int, off64_t, off64_t) = dlsym(RTLD_NEXT, "posix_fallocate64");
    return fails(fd, "write_error") ? errno : real(fd, at, size);
}

int clock_gettime(clockid_t clock, struct timespec *now) {
    int (*real)(clockid_t, struct timespec *) = dlsym(RTLD_NEXT, "clock_gettime");
    int failed = real(clock, now);
    if (failed == 0 && clock == CLOCK_REALTIME) now->tv_sec += order("clock_shift_s");
    return failed;
}

int gettimeofday(struct timeval *restrict now, void *restrict zone) {
    struct timespec exact;
    (void)zone;
    if (clock_gettime(CLOCK_REALTIME, &exact) != 0) return -1;
    now->tv_sec = exact.tv_sec;
    now->tv_usec = exact.tv_nsec / 1000;
    return 0;
}
