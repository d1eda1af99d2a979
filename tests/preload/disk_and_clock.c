/* Lies to a broker about its disk and its clock, for ./dev soak faults. Loaded by LD_PRELOAD.
 *
 * The file that HEADGATE_PRELOAD names is mapped and holds eight-byte numbers in the order of
 * struct orders; tests/preload/lying.py writes the first five and reads the others. Only syncs and
 * writes of the files below a directory of the name HEADGATE_PRELOAD_DIRECTORY are concerned. */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/time.h>
#include <sys/uio.h>
#include <time.h>
#include <unistd.h>

struct orders {
    int64_t sync_delay_ms; /* a sync takes so much longer; it ends early if this falls */
    int64_t sync_error;    /* the errno with which syncs fail */
    int64_t sync_errors;   /* how many do */
    int64_t write_error;   /* the errno with which writes and the reservation of room fail; 0: none */
    int64_t clock_shift_s; /* the wall clock is so far ahead */
    int64_t syncs;         /* syncs that were concerned */
    int64_t syncs_delayed; /* those that took longer */
    int64_t syncs_failed;
    int64_t writes_failed;
};

static volatile struct orders nothing;
static volatile struct orders *orders = &nothing;
static const char *directory = "/";

__attribute__((constructor)) static void map_orders(void) {
    const char *path = getenv("HEADGATE_PRELOAD"), *name = getenv("HEADGATE_PRELOAD_DIRECTORY");
    int fd = path == NULL ? -1 : open(path, O_RDWR | O_CLOEXEC);
    void *found = fd < 0 ? MAP_FAILED
                         : mmap(NULL, sizeof *orders, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
    if (fd >= 0) close(fd);
    if (found == MAP_FAILED || name == NULL) {
        fprintf(stderr, "disk_and_clock: HEADGATE_PRELOAD or its directory cannot be used\n");
        _exit(127);
    }
    orders = found;
    directory = name;
}

static void *next(const char *name) {
    void *found = dlsym(RTLD_NEXT, name);
    if (found == NULL) abort();
    return found;
}

static int is_concerned(int fd) {
    char link[64], path[PATH_MAX];
    int saved = errno;
    snprintf(link, sizeof link, "/proc/self/fd/%d", fd);
    ssize_t size = readlink(link, path, sizeof path - 1);
    errno = saved;
    if (size < 0) return 0;
    path[size] = '\0';
    return strstr(path, directory) != NULL;
}

static void wait_ms(int64_t waited_ms) {
    struct timespec step = {0, 5000000};
    for (; waited_ms < orders->sync_delay_ms; waited_ms += 5) nanosleep(&step, NULL);
}

static int sync_fails(int fd) {
    if (!is_concerned(fd)) return 0;
    __atomic_add_fetch(&orders->syncs, 1, __ATOMIC_SEQ_CST);
    if (orders->sync_delay_ms > 0) {
        __atomic_add_fetch(&orders->syncs_delayed, 1, __ATOMIC_SEQ_CST);
        wait_ms(0);
    }
    if (orders->sync_errors <= 0) return 0;
    __atomic_sub_fetch(&orders->sync_errors, 1, __ATOMIC_SEQ_CST);
    __atomic_add_fetch(&orders->syncs_failed, 1, __ATOMIC_SEQ_CST);
    errno = (int)orders->sync_error;
    return 1;
}

static int write_fails(int fd) {
    if (orders->write_error == 0 || !is_concerned(fd)) return 0;
    __atomic_add_fetch(&orders->writes_failed, 1, __ATOMIC_SEQ_CST);
    errno = (int)orders->write_error;
    return 1;
}

int fdatasync(int fd) {
    int (*real)(int) = next("fdatasync");
    return sync_fails(fd) ? -1 : real(fd);
}

int fsync(int fd) {
    int (*real)(int) = next("fsync");
    return sync_fails(fd) ? -1 : real(fd);
}

ssize_t pwrite64(int fd, const void *data, size_t size, off64_t at) {
    ssize_t (*real)(int, const void *, size_t, off64_t) = next("pwrite64");
    return write_fails(fd) ? -1 : real(fd, data, size, at);
}

ssize_t pwrite(int fd, const void *data, size_t size, off_t at) {
    return pwrite64(fd, data, size, at);
}

ssize_t pwritev64(int fd, const struct iovec *parts, int count, off64_t at) {
    ssize_t (*real)(int, const struct iovec *, int, off64_t) = next("pwritev64");
    return write_fails(fd) ? -1 : real(fd, parts, count, at);
}

ssize_t pwritev(int fd, const struct iovec *parts, int count, off_t at) {
    return pwritev64(fd, parts, count, at);
}

int posix_fallocate64(int fd, off64_t at, off64_t size) {
    int (*real)(int, off64_t, off64_t) = next("posix_fallocate64");
    return write_fails(fd) ? errno : real(fd, at, size);
}

int posix_fallocate(int fd, off_t at, off_t size) {
    return posix_fallocate64(fd, at, size);
}

int clock_gettime(clockid_t clock, struct timespec *now) {
    static int (*real)(clockid_t, struct timespec *);
    if (real == NULL) real = next("clock_gettime");
    int failed = real(clock, now);
    if (failed == 0 && clock == CLOCK_REALTIME) now->tv_sec += orders->clock_shift_s;
    return failed;
}

time_t time(time_t *result) {
    struct timespec exact;
    if (clock_gettime(CLOCK_REALTIME, &exact) != 0) return (time_t)-1;
    if (result != NULL) *result = exact.tv_sec;
    return exact.tv_sec;
}

int gettimeofday(struct timeval *restrict now, void *restrict zone) {
    struct timespec exact;
    (void)zone;
    if (clock_gettime(CLOCK_REALTIME, &exact) != 0) return -1;
    now->tv_sec = exact.tv_sec;
    now->tv_usec = exact.tv_nsec / 1000;
    return 0;
}
