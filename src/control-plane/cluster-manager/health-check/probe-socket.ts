// A connection that a probe has opened, from its beginning to its end. Where the cluster has TLS, it is secured before the probe
// hears of it. Main thread.
//
//   CONNECTING ──plain──────────────────────────────────────────────────────────► OPEN, onOpen ──ended, failed──► onLost
//       ├──connected──► AWAITING its turn ──► SHAKING ──done, the host believed──────┘
//       └──failed, refused, in any of them──► onLost

import type { Socket } from 'node:net';
import { formatAddress } from '../../../base/address.ts';
import type { FaultBoundary } from '../../../base/fault-boundary.ts';
import { isOpensslError, type TlsError } from '../../../tls/failure.ts';
import type { HandshakeTurn } from './handshake-turns.ts';
import { connectTo, faultOf, type ProbeOrigin, type ProbeTarget } from './probe.ts';
import type { ProbeSecurity } from './probe-tls.ts';

const WHERE = 'the connection of a health check';

export interface ProbeSocketOwner {
  /** Whatever comes over it is the owner's from now on, in the same turn. */
  onOpen(socket: Socket): void;
  /** Once, unless it was destroyed: the peer has ended the stream, or it has failed; `reason` says how. */
  onLost(reason: string | undefined): void;
}

export class ProbeSocket {
  readonly #raw: Socket;
  readonly #faults: FaultBoundary;
  readonly #owner: ProbeSocketOwner;
  #secured: Socket | undefined;
  #turn: HandshakeTurn | undefined;
  #reason: string | undefined;
  #isOpen = false;
  #isOver = false;

  /** @param protocols what the probe speaks, for ALPN. */
  constructor(
    target: ProbeTarget,
    origin: ProbeOrigin | undefined,
    protocols: readonly string[],
    faults: FaultBoundary,
    owner: ProbeSocketOwner,
  ) {
    this.#faults = faults;
    this.#owner = owner;
    this.#raw = connectTo(target.address, origin);
    this.#watch(this.#raw);
    const onConnect = (): void => this.#connected(target, origin, protocols);
    this.#raw.on('connect', faults.handler(WHERE, onConnect));
  }

  /** Its owner hears nothing more. Idempotent. */
  destroy(): void {
    this.#isOver = true;
    this.#turn?.end();
    this.#secured?.destroy();
    this.#raw.destroy();
  }

  #connected(target: ProbeTarget, origin: ProbeOrigin | undefined, protocols: readonly string[]): void {
    if (this.#isOver) return;
    if (origin?.preamble !== undefined) this.#raw.write(origin.preamble);
    const security = origin?.security?.();
    if (security === undefined) {
      this.#open(this.#raw);
      return;
    }
    this.#reason = security.refuse();
    if (this.#reason !== undefined) {
      this.#lost();
      return;
    }
    const onTurn = (): void => this.#shake(security, target, protocols);
    this.#turn = security.awaitTurn(this.#faults.handler(WHERE, onTurn));
  }

  #shake(security: ProbeSecurity, target: ProbeTarget, protocols: readonly string[]): void {
    const handshake = security.begin(this.#raw, formatAddress(target.address), protocols);
    const { socket } = handshake;
    this.#secured = socket;
    this.#watch(socket);
    const onError = (error: Error): void => {
      if (!this.#isOpen) handshake.noteFailure(error);
    };
    const onSecure = (): void => {
      if (this.#isOver) return;
      this.#turn?.end();
      this.#reason = handshake.judge();
      if (this.#reason === undefined) this.#open(socket);
      else this.#lost();
    };
    socket.on('error', this.#faults.handler(WHERE, onError));
    socket.once('secureConnect', this.#faults.handler(WHERE, onSecure));
  }

  #open(socket: Socket): void {
    this.#isOpen = true;
    this.#owner.onOpen(socket);
  }

  #watch(socket: Socket): void {
    const onError = (error: TlsError): void => {
      this.#reason ??= isOpensslError(error) ? `TLS: ${error.reason ?? error.code}` : faultOf(error);
    };
    const onLost = (): void => this.#lost();
    socket.on('error', this.#faults.handler(WHERE, onError));
    // A peer that ends its side has nothing more to say.
    socket.on('end', this.#faults.handler(WHERE, onLost));
    socket.on('close', this.#faults.handler(WHERE, onLost));
  }

  #lost(): void {
    if (this.#isOver) return;
    this.destroy();
    this.#owner.onLost(this.#reason ?? (this.#isOpen ? undefined : 'closed before it was secured'));
  }
}
