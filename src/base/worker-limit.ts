/** Worker threads of a process at most: as many as the shared memory has slabs for, beside that of the main thread. */
export const MAX_WORKERS = 511;
