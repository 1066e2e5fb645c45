// TLS over a socket that has been accepted, in one place: all that leans on more of Node's TLSSocket than its documentation
// says, but for what its writes do (prompt-writes.ts), which is four things.
//
//   - It is made with a high-water mark of 1, as every other socket is (socket-events.ts), so that memory given to `write`
//     stays untouched until `drain`. `tls.Server` has no way to say so.
//   - `_tlsError` tells of failures after the handshake as well; 'error' does not without a tls.Server.
//   - `_handle.verifyError()` is what OpenSSL thinks of the peer's chain.
//   - What it keeps for itself that a secured connection has no use for is let go of (`shed`), 0.7 KiB of each.
//
// Tests fail where a Node release does otherwise.

import { EventEmitter } from 'node:events';
import type { Socket } from 'node:net';
import type { SecureContext, TLSSocket, TLSSocketOptions } from 'node:tls';
import { PromptTlsSocket } from './prompt-writes.ts';

export interface ServerTlsOptions {
  readonly secureContext: SecureContext;
  readonly alpnProtocols: readonly string[];
  readonly requestsCertificate: boolean;
  /** A client without one is sent the alert that says so. */
  readonly requiresCertificate: boolean;
  /** Chooses another context by the name that a client asks for; null where there is one only. */
  readonly findContext: ((serverName: string) => SecureContext | undefined) | null;
  /** Null where nothing is stapled. */
  readonly stapler: OcspStapler | null;
}

type Listeners = Record<string, unknown>;

type Internals = TLSSocket & {
  _tlsOptions: TLSSocketOptions;
  _events: Listeners;
  readonly _handle: { verifyError(): NodeJS.ErrnoException | null | undefined } | null;
};

/** Answers clients that ask for the state of the certificate: what a TLSSocket asks its server. */
export class OcspStapler extends EventEmitter {
  readonly _sharedCreds: SecureContext;

  /** @param answer given the certificate in DER; it throws where there is to be no handshake. */
  constructor(context: SecureContext, answer: (certificate: Buffer) => Uint8Array | null) {
    super();
    this._sharedCreds = context;
    this.on('OCSPRequest', (own: Buffer, _issuer: Buffer, done: (error: Error | null, response?: Buffer) => void) => {
      try {
        const response = answer(own);
        done(null, response === null ? undefined : Buffer.from(response));
      } catch (error) {
        done(error as Error);
      }
    });
  }
}

/** Made once for all connections of a filter chain. */
export function serverSocketOptions(options: ServerTlsOptions): TLSSocketOptions {
  const { secureContext, alpnProtocols, findContext, stapler } = options;
  const given = {
    isServer: true,
    secureContext,
    requestCert: options.requestsCertificate,
    rejectUnauthorized: options.requiresCertificate,
    highWaterMark: 1,
    ...(alpnProtocols.length === 0 ? {} : { ALPNProtocols: [...alpnProtocols] }),
    ...(findContext === null
      ? {}
      : {
          SNICallback: (name: string, found: (error: null, context: SecureContext | undefined) => void) =>
            found(null, findContext(name)),
        }),
    ...(stapler === null ? {} : { server: stapler }),
  };
  // Node's types know neither the high-water mark nor a server that is none of its own.
  return given as unknown as TLSSocketOptions;
}

/** Begins a handshake as the server. `secure` or `close` follows. */
export function secureServerSocket(raw: Socket, options: TLSSocketOptions): TLSSocket {
  const socket = new PromptTlsSocket(raw, options);
  shed(socket as unknown as Internals, raw, options);
  socket.on('_tlsError', destroyWith);
  return socket;
}

function shed(socket: Internals, raw: Socket, options: TLSSocketOptions): void {
  // OpenSSL has them by now. The copy has one of the protocols, which keeps the slab that it was made in.
  socket._tlsOptions = options;
  // That is for one that has yet to connect. One by one: `removeAllListeners` would leave a dictionary behind.
  for (const listener of raw.listeners('connect')) raw.removeListener('connect', listener as () => void);
  // The first listener comes before those that all streams begin with: Node makes a dictionary then.
  socket._events = Object.assign(noListeners(), socket._events);
}

/** An object of one shape for all connections, with a place for whatever they listen for. */
function noListeners(): Listeners {
  const none = undefined;
  return {
    close: none,
    error: none,
    data: none,
    end: none,
    drain: none,
    secure: none,
    newListener: none,
    _tlsError: none,
  };
}

function destroyWith(this: TLSSocket, error: Error): void {
  this.destroy(error);
}

/** The chain of the peer's certificate leads to an authority, and has not expired. After the handshake. */
export function isPeerTrusted(socket: TLSSocket): boolean {
  return !(socket as Internals)._handle?.verifyError();
}
