// Tells when a file or a symbolic link has been replaced by another, the way in which operators change it at once: the new one is
// made beside it and moved over it. Main thread.

import { type FSWatcher, watch } from 'node:fs';
import path from 'node:path';

export interface MoveWatchEvents {
  /** Something has been moved to the place, or away from it. */
  readonly onMoved: () => void;
  /** It cannot be watched, or no longer. */
  readonly onError: (error: Error) => void;
}

export class MoveWatch {
  #watcher: FSWatcher | undefined;

  /** One place in a folder. */
  static ofPlace(place: string, events: MoveWatchEvents): MoveWatch {
    return new MoveWatch(path.dirname(place), path.basename(place), events);
  }

  /** All places in a folder. */
  static ofFolder(folder: string, events: MoveWatchEvents): MoveWatch {
    return new MoveWatch(folder, undefined, events);
  }

  private constructor(folder: string, name: string | undefined, { onMoved, onError }: MoveWatchEvents) {
    try {
      this.#watcher = watch(folder, { persistent: false }, (event, moved) => {
        if (event === 'rename' && (name === undefined || moved === null || moved === name)) onMoved();
      });
      this.#watcher.on('error', (error) => {
        this.close();
        onError(error);
      });
    } catch (error) {
      onError(error as Error);
    }
  }

  close(): void {
    this.#watcher?.close();
    this.#watcher = undefined;
  }
}
