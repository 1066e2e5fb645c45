// Permissions as those meet them who are not root, whom no file is closed to.

const NOBODY = 65_534;

/**
 * Runs as a user who may not read everything. What `run` reads besides, such as modules and tables that are loaded on
 * first use, must be loaded already: that user may not even reach the folder of this clone.
 */
export function asNobody<Result>(run: () => Result): Result {
  if (process.geteuid?.() !== 0) return run();
  process.seteuid?.(NOBODY);
  try {
    return run();
  } finally {
    process.seteuid?.(0);
  }
}
