// Ports for programs that have to be told theirs, and bind it seconds later or again after they were killed. A port that
// was free a moment ago is no such port: the system gives it to the next one who asks for any, and what was meant for the
// program comes to a stranger. These lie outside of what the system gives out, and are claimed as long as they are held:
// by a socket in Linux' abstract namespace, which ends with the process that holds it.

import { once } from 'node:events';
import { readFileSync } from 'node:fs';
import { createServer, type ListenOptions, type Server } from 'node:net';

export interface PortRange {
  readonly first: number;
  readonly last: number;
}

const LOWEST = 20_000;
const HIGHEST = 65_535;
const RANGE_FILE = '/proc/sys/net/ipv4/ip_local_port_range';
/** Linux' own, for systems that have no such file. What macOS gives out begins above it. */
const USUAL_FIRST_GIVEN = 32_768;

export class ReservedPort implements AsyncDisposable {
  readonly port: number;
  readonly #claim: Server | undefined;

  private constructor(port: number, claim: Server | undefined) {
    this.port = port;
    this.#claim = claim;
  }

  static async take(range: PortRange = neverGivenOut()): Promise<ReservedPort> {
    const count = range.last - range.first + 1;
    const start = Math.floor(Math.random() * count);
    for (let step = 0; step < count; step += 1) {
      const port = range.first + ((start + step) % count);
      const claim = process.platform === 'linux' ? await listening({ path: `\0weir-port-${port}` }) : undefined;
      if (claim === null) continue;
      const held = new ReservedPort(port, claim);
      const trial = await listening({ port, host: '0.0.0.0', exclusive: true });
      if (trial === null) {
        await held[Symbol.asyncDispose]();
        continue;
      }
      await closed(trial);
      return held;
    }
    throw new Error(`every port of ${range.first} to ${range.last} is in use`);
  }

  async [Symbol.asyncDispose](): Promise<void> {
    if (this.#claim?.listening) await closed(this.#claim);
  }
}

/** Ports that nobody gets who has not asked for exactly them. */
export function neverGivenOut(): PortRange {
  const [first = USUAL_FIRST_GIVEN, last = HIGHEST] = givenOut();
  if (first > LOWEST) return { first: LOWEST, last: first - 1 };
  if (last < HIGHEST) return { first: last + 1, last: HIGHEST };
  // The system gives out all of them: as good as it gets.
  return { first: LOWEST, last: USUAL_FIRST_GIVEN - 1 };
}

function givenOut(): readonly number[] {
  try {
    return readFileSync(RANGE_FILE, 'utf8').trim().split(/\s+/).map(Number);
  } catch {
    return [];
  }
}

/** @returns null where somebody else listens. Keeps no process alive. */
async function listening(options: ListenOptions): Promise<Server | null> {
  const server = createServer().unref();
  try {
    await once(server.listen(options), 'listening');
    return server;
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code === 'EADDRINUSE') return null;
    throw error;
  }
}

async function closed(server: Server): Promise<void> {
  const end = once(server, 'close');
  server.close();
  await end;
}
