/* kinds.h — lines of a log that mean the same to a diagnosis: lists of rc_log_kind.
 *
 * A clue asks whether one was seen (clues.c), the verdict is told with the first (facts.c).
 */
#ifndef RC_DIAGNOSE_KINDS_H
#define RC_DIAGNOSE_KINDS_H

/* The driver or a library was refused device memory. */
#define KINDS_LIBRARY                                                                          \
    RC_LOG_DRIVER_OOM, RC_LOG_NCCL_OOM, RC_LOG_CUBLAS_ALLOC, RC_LOG_CUDNN_ALLOC,               \
        RC_LOG_CUFFT_ALLOC, RC_LOG_CUBLAS_INIT, RC_LOG_CUDNN_INIT, RC_LOG_HIPBLAS_ALLOC,       \
        RC_LOG_CUDNN_DEVICE_ALLOC
/* An inference engine was. */
#define KINDS_ENGINE RC_LOG_ENGINE_MEMORY, RC_LOG_ENGINE_CACHE
/* Host memory was refused. */
#define KINDS_HOST                                                                             \
    RC_LOG_HOST_ALLOC, RC_LOG_HOST_ERRNO, RC_LOG_HOST_BADALLOC, RC_LOG_HOST_NUMPY,             \
        RC_LOG_HOST_SHM, RC_LOG_HOST_BUS, RC_LOG_HOST_MEMORYERROR
/* What ends a job and is no exception of Python's. */
#define KINDS_CRASH                                                                            \
    RC_LOG_TIMEOUT_NCCL, RC_LOG_SEGFAULT, RC_LOG_TIME_LIMIT, RC_LOG_ILLEGAL,                   \
        RC_LOG_ILLEGAL_HSA, RC_LOG_ILLEGAL_ALIGN, RC_LOG_DEVICE_ASSERT, RC_LOG_LAUNCH_FAILURE, \
        RC_LOG_ECC, RC_LOG_XID, RC_LOG_BUS_LOST, RC_LOG_PREEMPTED, RC_LOG_NODE_FAIL,           \
        RC_LOG_OUT_OF_RESOURCE
/* A recompute gave other tensors than forward saved. */
#define KINDS_MISMATCH                                                                         \
    RC_LOG_CHECKPOINT_METADATA, RC_LOG_CHECKPOINT_COUNT, RC_LOG_CHECKPOINT_MORE,               \
        RC_LOG_CHECKPOINT_UNPACK
/* DDP saw a gradient twice. */
#define KINDS_TWICE RC_LOG_CHECKPOINT_TWICE, RC_LOG_CHECKPOINT_TWICE2

#endif
