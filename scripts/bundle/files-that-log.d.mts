/** See files-that-log.mjs. */
export declare function filesThatLog(root: string): string[];
