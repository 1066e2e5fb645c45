// What the engine says of the heap of its thread, to that thread. It is asked by the inspector's protocol, whose sessions end before
// their thread's heap does, however the thread ends. What node:v8 and worker_threads have for it does not: a sampling that runs when a
// worker ends, or a snapshot of it that nobody has read yet, is taken down behind the heap, and the process with it
// (docs/decisions/0095-profilers-end-before-their-threads.md). Any thread.

import type { Session } from 'node:inspector';

export interface HeapSamplingOptions {
  /** Bytes between two looks at allocations. */
  readonly sampleInterval: number;
  /** Stacks are cut to this. */
  readonly stackDepth: number;
}

interface Chunk {
  readonly params: { readonly chunk: string };
}

/** The engine has one for all sessions of a thread, and a second one would end with the first. */
let isSampling = false;

/** Stacks of what is allocated from its start on and still there at its end. There is one at a time in a thread. */
export class HeapSampling {
  readonly #session: Session;
  #hasEnded = false;

  /** @throws Error when there is one already. */
  constructor({ sampleInterval, stackDepth }: HeapSamplingOptions) {
    if (isSampling) throw new Error('the heap of this thread is sampled already');
    this.#session = openSession();
    isSampling = true;
    try {
      answer(this.#session, 'HeapProfiler.startSampling', { samplingInterval: sampleInterval, stackDepth });
    } catch (error) {
      this.end();
      throw error;
    }
  }

  /** @returns V8's profile as JSON; it has ended then. */
  stop(): string {
    try {
      return JSON.stringify(answer<{ profile: unknown }>(this.#session, 'HeapProfiler.stopSampling').profile);
    } finally {
      this.end();
    }
  }

  /** Without a profile; can be called again. */
  end(): void {
    if (this.#hasEnded) return;
    this.#hasEnded = true;
    isSampling = false;
    this.#session.disconnect();
  }
}

/** Hands out V8's snapshot as it comes, all within one turn, for which the thread stands still. Resolves behind the last piece. */
export async function dumpHeap(onPiece: (piece: string) => void): Promise<void> {
  const session = openSession();
  session.on('HeapProfiler.addHeapSnapshotChunk', ({ params }: Chunk) => onPiece(params.chunk));
  try {
    await new Promise<void>((resolve, reject) => {
      const done = (error: Error | null): void => (error ? reject(error) : resolve());
      session.post('HeapProfiler.takeHeapSnapshot', { reportProgress: false }, done);
    });
  } finally {
    session.disconnect();
  }
}

function openSession(): Session {
  const { Session } = process.getBuiltinModule('node:inspector');
  const session = new Session();
  session.connect();
  return session;
}

/** Of what the engine answers at once. */
function answer<Answer>(session: Session, method: string, parameters: object = {}): Answer {
  let error: Error | null = new Error(`the engine does not answer ${method}`);
  let result: unknown;
  session.post(method, parameters, (failure, answered) => {
    error = failure;
    result = answered;
  });
  if (error) throw error;
  return result as Answer;
}
