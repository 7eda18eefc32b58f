/* A library to be loaded before all others (LD_PRELOAD), in which the system refuses: the n-th call of one
 * function, or every call from the n-th on, fails as it does when nothing is left.
 *
 *     faults_arm("mmap", 3, 1 << 20, 0);    // the third mmap() of at least 1 MiB
 *     ...
 *     met = faults_disarm();                // how many calls were made to fail
 *     faults_wait(60);                      // as if a minute had passed; now the clock stands still
 *
 * "pwrite, interrupted" fails because of a signal. "tgkill" says that a thread is still there before the n-th call.
 * "thread clock" counts how often it is read, twice in a job of several threads; another clock stops meanwhile.
 */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <errno.h>
#include <pthread.h>
#include <signal.h>
#include <stdarg.h>
#include <stddef.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <sys/types.h>
#include <time.h>
#include <unistd.h>

static char function_armed[32];
static int armed, every;
static long countdown, met;
static size_t smallest;
static sigset_t workers_mask; /* with which the last thread was created */

void faults_arm(const char *function, long n, size_t least, int all_later)
{
    strcpy(function_armed, function);
    countdown = n, met = 0, smallest = least, every = all_later;
    __atomic_store_n(&armed, 1, __ATOMIC_SEQ_CST);
}

long faults_disarm(void)
{
    __atomic_store_n(&armed, 0, __ATOMIC_SEQ_CST);
    return met;
}

int faults_worker_blocks(int number) { return sigismember(&workers_mask, number); }

static int is_armed(const char *function)
{
    return __atomic_load_n(&armed, __ATOMIC_SEQ_CST) && !strcmp(function_armed, function);
}

static int fails(const char *function, size_t bytes)
{
    long left;
    if (!is_armed(function) || bytes < smallest) return 0;
    left = __atomic_sub_fetch(&countdown, 1, __ATOMIC_SEQ_CST);
    if (left > 0 || (left < 0 && !every)) return 0;
    __atomic_add_fetch(&met, 1, __ATOMIC_SEQ_CST);
    return 1;
}

/* The function that this one interposes. */
#define NEXT(name) ((__typeof__(&name))dlsym(RTLD_NEXT, #name))

/* glibc's own names: dlsym() itself allocates. */
extern void *__libc_malloc(size_t), *__libc_calloc(size_t, size_t), *__libc_realloc(void *, size_t);

#define REFUSE(answer) \
    do { \
        errno = ENOMEM; \
        return answer; \
    } while (0)

void *malloc(size_t bytes)
{
    if (fails("malloc", bytes)) REFUSE(NULL);
    return __libc_malloc(bytes);
}

void *calloc(size_t count, size_t bytes)
{
    if (fails("malloc", count * bytes)) REFUSE(NULL);
    return __libc_calloc(count, bytes);
}

void *realloc(void *data, size_t bytes)
{
    if (fails("malloc", bytes)) REFUSE(NULL);
    return __libc_realloc(data, bytes);
}

void *mmap(void *at, size_t bytes, int protection, int flags, int file, off_t offset)
{
    if (fails("mmap", bytes)) REFUSE(MAP_FAILED);
    return (void *)syscall(SYS_mmap, at, bytes, protection, flags, file, offset);
}

int mprotect(void *at, size_t bytes, int protection)
{
    if (fails("mprotect", bytes)) REFUSE(-1);
    return (int)syscall(SYS_mprotect, at, bytes, protection);
}

int munmap(void *at, size_t bytes)
{
    if (fails("munmap", bytes)) REFUSE(-1);
    return (int)syscall(SYS_munmap, at, bytes);
}

int madvise(void *at, size_t bytes, int advice)
{
    if (advice != MADV_DONTNEED && fails("madvise", bytes)) REFUSE(-1);
    return (int)syscall(SYS_madvise, at, bytes, advice);
}

static struct timespec stopped; /* what the clock shows while it stands still */

void faults_wait(long seconds)
{
    if (!stopped.tv_sec) syscall(SYS_clock_gettime, CLOCK_MONOTONIC, &stopped);
    stopped.tv_sec += seconds;
}

int clock_gettime(clockid_t clock, struct timespec *now)
{
    const int status = (int)syscall(SYS_clock_gettime, clock, now);
    if (clock == CLOCK_MONOTONIC && stopped.tv_sec) *now = stopped;
    if (clock == CLOCK_THREAD_CPUTIME_ID) fails("thread clock", 0);
    else if (clock == CLOCK_MONOTONIC && is_armed("thread clock"))
        now->tv_sec = now->tv_nsec = 0;
    return status;
}

ssize_t pwrite(int file, const void *src, size_t bytes, off_t offset)
{
    if (fails("pwrite", bytes)) REFUSE(-1);
    if (fails("pwrite, interrupted", bytes)) {
        errno = EINTR;
        return -1;
    }
    return syscall(SYS_pwrite64, file, src, bytes, offset);
}

void *mmap64(void *, size_t, int, int, int, off64_t) __attribute__((alias("mmap")));
ssize_t pwrite64(int, const void *, size_t, off64_t) __attribute__((alias("pwrite")));

long syscall(long number, ...)
{
    long a[6];
    va_list arguments;
    va_start(arguments, number);
    for (int i = 0; i < 6; i++) a[i] = va_arg(arguments, long);
    va_end(arguments);
    if (number == SYS_memfd_create && a[1] & 8) return errno = EINVAL, -1; /* MFD_NOEXEC_SEAL: an older Linux */
    if (number == SYS_memfd_create && fails("memfd_create", 0)) REFUSE(-1);
    if (number == SYS_tgkill && a[1] && is_armed("tgkill")) return -fails("tgkill", 0);
    return NEXT(syscall)(number, a[0], a[1], a[2], a[3], a[4], a[5]);
}

int pthread_create(pthread_t *thread, const pthread_attr_t *attributes, void *(*start)(void *), void *argument)
{
    pthread_sigmask(SIG_SETMASK, NULL, &workers_mask);
    if (fails("pthread_create", 0)) return EAGAIN;
    return NEXT(pthread_create)(thread, attributes, start, argument);
}
