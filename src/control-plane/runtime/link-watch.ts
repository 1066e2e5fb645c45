// Tells when a symbolic link has been replaced by another, the way in which operators change many files at once: the new link is
// made beside it and moved over it. Main thread.

import { type FSWatcher, watch } from 'node:fs';
import path from 'node:path';

export interface LinkWatchEvents {
  /** Something has been moved to the place of the link, or away from it. */
  readonly onMoved: () => void;
  /** It cannot be watched, or no longer. */
  readonly onError: (error: Error) => void;
}

export class LinkWatch {
  #watcher: FSWatcher | undefined;

  constructor(link: string, { onMoved, onError }: LinkWatchEvents) {
    const name = path.basename(link);
    try {
      this.#watcher = watch(path.dirname(link), { persistent: false }, (event, moved) => {
        if (event === 'rename' && (moved === null || moved === name)) onMoved();
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
