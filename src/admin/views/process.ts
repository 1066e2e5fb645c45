// The process, as the home page shows it.

export interface TroubleView {
  /** Requests fail of it. */
  readonly isGrave: boolean;
  readonly text: string;
}

export interface ProcessView {
  /** Hot restarts that led to this process. */
  readonly epoch: number;
  readonly memory: { residentBytes(): number; heapBytes(): number };
  /** Open descriptors, and how many there may be; undefined where the system does not say. */
  descriptors(): { readonly open: number; readonly limit: number | undefined } | undefined;
  /** Share of its time that each thread has been at work lately, main first; undefined for a worker that is being started. */
  eventLoopUses(): readonly { readonly name: string; readonly use: number | undefined }[];
  /** What has gone wrong, and what an operator has stopped. */
  troubles(): readonly TroubleView[];
  /** What the configuration holds that has no effect. */
  readonly warnings: readonly string[];
}
