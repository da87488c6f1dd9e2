package task

// EndLock is the task with which earlier programs ended a coupon's lock at its time. Nothing
// queues it any more; a worker acknowledges tasks that still wait, and its sweep ends the locks.
const EndLock = "coupon.timeout.v1"
