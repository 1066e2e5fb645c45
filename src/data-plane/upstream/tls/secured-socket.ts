// A connection to one address that is secured before its owner has it.
//
//   CONNECTING ──connected: preamble──► QUEUED ──its turn: first message──► SHAKING ──done, and the server is right──► DONE, onSecured
//       └──failed, closed──►  DONE, onFailed  ◄──closed──┴──────────alert, wrong certificate, closed─┘
//
// The owner bounds the time, and ends it before by `destroy`, after which it is told nothing.

import type { Socket } from 'node:net';
import type { TLSSocket } from 'node:tls';
import { type Address, formatAddress } from '../../../base/address.ts';
import { peerRefusal } from '../../../tls/failure.ts';
import { connectUnderlying, layOver, type UpstreamSocketOptions } from '../../network/socket-events.ts';
import { ConnectionTls } from '../../network/tls/connection-tls.ts';
import type { PacedHandshake } from '../../network/tls/handshake-pacing.ts';
import { writePromptly } from '../../network/tls/prompt-writes.ts';
import type { WorkerContext } from '../../worker-context.ts';
import type { AlpnWish, Opening } from '../opening.ts';
import type { ClientHandshake, UpstreamTls } from './upstream-tls.ts';

export interface SecuredSocketOwner {
  /** The socket is the owner's, which attaches itself at once. */
  onSecured(socket: TLSSocket, tls: ConnectionTls): void;
  onFailed(error: NodeJS.ErrnoException | null): void;
  onFault(error: unknown): void;
}

/** What the handshake is about. */
interface Wish {
  readonly address: Address;
  readonly opening: Opening;
  readonly alpn: AlpnWish;
}

export class SecuredSocket implements PacedHandshake {
  readonly #context: WorkerContext;
  readonly #raw: Socket;
  readonly #owner: SecuredSocketOwner;
  readonly #tls: UpstreamTls;
  /** Null when the handshake has begun. */
  #wish: Wish | null;
  #handshake: ClientHandshake | null = null;
  #error: NodeJS.ErrnoException | null = null;
  #isDone = false;
  /** Negative before it is connected. */
  #connectedMs = -1;

  constructor(
    context: WorkerContext,
    address: Address,
    settings: UpstreamSocketOptions,
    tls: UpstreamTls,
    opening: Opening,
    alpn: AlpnWish,
    owner: SecuredSocketOwner,
  ) {
    this.#context = context;
    this.#owner = owner;
    this.#wish = { address, opening, alpn };
    this.#tls = tls;
    this.#raw = connectUnderlying(address, context, settings, opening.preamble);
    // What comes before the handshake begins, an end too, is for TLS to read.
    this.#raw.pause();
    this.#raw.on('error', this.#onError);
    this.#raw.on('close', this.#onClose);
    this.#raw.once('connect', () => this.#guard(() => this.#ask()));
  }

  destroy(): void {
    this.#isDone = true;
    this.#context.handshakes.leave(this);
    this.#handshake?.socket.destroy();
    this.#raw.destroy();
  }

  #ask(): void {
    if (this.#isDone) return;
    this.#connectedMs = this.#context.clock.monotonicMs();
    const refusal = this.#tls.refuse();
    if (refusal === undefined) {
      this.#context.handshakes.ask(this, true);
      return;
    }
    this.#error = refusal;
    this.#end();
  }

  /** For the queue: its turn has come. */
  begin(): void {
    const wish = this.#wish;
    this.#wish = null;
    if (wish !== null && !this.#isDone) this.#guard(() => this.#shake(wish));
  }

  #shake({ address, opening, alpn: { protocols, takesPlace, refused = [] } }: Wish): void {
    const own = this.#tls.settings.alpnProtocols;
    const handshake = this.#tls.begin(this.#raw, {
      label: formatAddress(address),
      sentName: opening.sentName,
      verifiedName: opening.verifiedName,
      hostname: opening.hostname,
      alpnProtocols: takesPlace || own.length === 0 ? protocols : own,
    });
    this.#handshake = handshake;
    const { socket } = handshake;
    layOver(socket, this.#raw);
    writePromptly(socket);
    socket.on('error', this.#onError);
    socket.on('close', this.#onClose);
    socket.once('end', this.#onEnd);
    socket.once('secureConnect', () => this.#guard(() => this.#judge(handshake, refused)));
  }

  /** @param refused protocols. */
  #judge(handshake: ClientHandshake, refused: readonly string[]): void {
    if (this.#isDone) return;
    const { socket } = handshake;
    const tls = handshake.judge();
    if (!(tls instanceof ConnectionTls)) {
      this.#error = tls;
      this.#end();
      return;
    }
    if (refused.includes(tls.protocol)) {
      this.#error = peerRefusal(`the server has chosen ${tls.protocol}, which is not what its cluster speaks`);
      this.#end();
      return;
    }
    this.#isDone = true;
    socket.removeListener('error', this.#onError);
    socket.removeListener('close', this.#onClose);
    socket.removeListener('end', this.#onEnd);
    tls.connectedMs = this.#connectedMs;
    this.#owner.onSecured(socket, tls);
  }

  /** What is thrown is a bug, and costs this connection only. */
  #guard(act: () => void): void {
    try {
      act();
    } catch (error) {
      this.destroy();
      this.#owner.onFault(error);
    }
  }

  readonly #onError = (error: NodeJS.ErrnoException): void => {
    this.#error ??= error;
  };

  readonly #onEnd = (): void => this.#end();

  readonly #onClose = (): void => this.#end();

  #end(): void {
    if (this.#isDone) return;
    this.destroy();
    this.#guard(() => {
      if (this.#error !== null) this.#tls.noteFailure(this.#error);
      this.#owner.onFailed(this.#error);
    });
  }
}
