// Tells when a file or a symbolic link has been replaced by another, the way in which operators change it at once: the new one is
// made beside it and moved over it. Main thread.

import { type FSWatcher, watch } from 'node:fs';
import path from 'node:path';
import type { FaultBoundary } from '../../base/fault-boundary.ts';

export interface MoveWatchEvents {
  /** Something has been moved to the place, or away from it. */
  readonly onMoved: () => void;
  /** It cannot be watched, or no longer. */
  readonly onError: (error: Error) => void;
}

export class MoveWatch {
  #watcher: FSWatcher | undefined;

  /** One place in a folder. */
  static ofPlace(place: string, faults: FaultBoundary, events: MoveWatchEvents): MoveWatch {
    return new MoveWatch(path.dirname(place), path.basename(place), faults, events);
  }

  /** All places in a folder. */
  static ofFolder(folder: string, faults: FaultBoundary, events: MoveWatchEvents): MoveWatch {
    return new MoveWatch(folder, undefined, faults, events);
  }

  private constructor(
    folder: string,
    name: string | undefined,
    faults: FaultBoundary,
    { onMoved, onError }: MoveWatchEvents,
  ) {
    const where = `the watch of ${folder}`;
    const onChange = (event: string, moved: string | null): void => {
      if (event === 'rename' && (name === undefined || moved === null || moved === name)) onMoved();
    };
    const onFailure = (error: Error): void => {
      this.close();
      onError(error);
    };
    try {
      this.#watcher = watch(folder, { persistent: false }, faults.handler(where, onChange));
      this.#watcher.on('error', faults.handler(where, onFailure));
    } catch (error) {
      onError(error as Error);
    }
  }

  close(): void {
    this.#watcher?.close();
    this.#watcher = undefined;
  }
}
