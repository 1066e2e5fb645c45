// Notices that a peer has left while nothing is read from it: its end lies behind bytes that nobody wants yet, or Node
// does not ask for it at all. So it is with the reset of a peer that has ended its side, behind which nothing is read.
// One for each worker; it looks twice a second, as long as there is somebody to look after.
//
//   UNWATCHED ──pause, ended──► NEW ──a look──► WATCHED: polled with every look
//       ▲                        └──resume, seen at the next look──┘
//       └─────────────────────────────────────────────────────────┘
//
// Pauses of a transfer that moves are shorter than the time between two looks: those cost a store or two. Pauses of an
// upstream need no such care: what it has sent before its end or its reset still belongs to the client, and is found when
// that takes more.

import type { Socket } from 'node:net';
import type { Clock } from '../../base/clock.ts';
import { descriptorOf } from '../../base/descriptor-budget.ts';
import { PeerState, type SystemCalls } from '../../base/system-calls.ts';
import { type TimeoutOwner, TimerEntry, type TimerWheel } from './timer-wheel.ts';

/** Two looks and a tick of the wheel are less than a second. */
const LOOK_MS = 400;

/** A connection whose reading may pause, or come to its end before the connection does. */
export interface PausedPeerOwner {
  /**
   * The peer of a paused connection has ended its side, of which it is told once, or has reset the connection, which is
   * all that one behind its end is told.
   * What the peer has sent before its end may still be read.
   */
  onPausedPeerGone(isReset: boolean): void;
}

/** One connection as the watch knows it; made with its first pause, or with its end. */
export class PausedPeer {
  readonly owner: PausedPeerOwner;
  readonly socket: Socket;
  isPaused = false;
  isListed = false;
  /** It was paused at a look already. */
  wasSeen = false;
  /** Its owner knows of the end: what is still to be noticed is a reset. */
  hasEnded = false;

  constructor(owner: PausedPeerOwner, socket: Socket) {
    this.owner = owner;
    this.socket = socket;
  }

  /** Reading goes on, or the connection is over. */
  resume(): void {
    this.isPaused = false;
  }
}

export interface PausedPeersOptions {
  /** Without them nobody is watched: who has left is noticed when reading goes on. */
  readonly systemCalls: SystemCalls | undefined;
  readonly wheel: TimerWheel;
  readonly clock: Clock;
  /** Told of what an owner has thrown, which is a bug; the others get their turn. */
  readonly onFault: (error: unknown) => void;
}

export class PausedPeers implements TimeoutOwner {
  readonly #options: PausedPeersOptions;
  readonly #timer = new TimerEntry(this);
  #listed: PausedPeer[] = [];
  #states: Uint8Array = new Uint8Array(0);

  constructor(options: PausedPeersOptions) {
    this.#options = options;
  }

  /** Connections that are looked after, and those that have just ceased to be. */
  get size(): number {
    return this.#listed.length;
  }

  /** Reading from the peer has stopped, until `resume` of it. */
  pause(peer: PausedPeer): void {
    peer.isPaused = true;
    peer.wasSeen = false;
    if (peer.isListed || this.#options.systemCalls === undefined) return;
    peer.isListed = true;
    this.#listed.push(peer);
    if (this.#listed.length === 1) this.#armLook();
  }

  /** The peer has ended its side, and nothing more is read: what may come is a reset. Until `resume` of it. */
  ended(peer: PausedPeer): void {
    peer.hasEnded = true;
    this.pause(peer);
  }

  onTimeout(): void {
    const watched: PausedPeer[] = [];
    const listed: PausedPeer[] = [];
    for (const peer of this.#listed) {
      if (!peer.isPaused) {
        peer.isListed = false;
        continue;
      }
      listed.push(peer);
      if (peer.wasSeen) watched.push(peer);
      peer.wasSeen = true;
    }
    this.#listed = listed;
    if (watched.length > 0) this.#look(watched);
    if (this.#listed.length > 0) this.#armLook();
  }

  #look(watched: readonly PausedPeer[]): void {
    if (this.#states.length < watched.length) this.#states = new Uint8Array(2 * watched.length);
    const states = this.#states;
    if (!this.#options.systemCalls!.peerStates(watched.map(descriptorOfPeer), states)) return;
    for (const [index, peer] of watched.entries()) {
      const state = states[index];
      // Another owner may have ended this one meanwhile.
      if (state === PeerState.alive || !peer.isPaused || (state === PeerState.ended && peer.hasEnded)) continue;
      peer.hasEnded = true;
      this.#tell(peer, state === PeerState.reset);
    }
  }

  #tell(peer: PausedPeer, isReset: boolean): void {
    try {
      peer.owner.onPausedPeerGone(isReset);
    } catch (error) {
      this.#options.onFault(error);
    }
  }

  #armLook(): void {
    const { wheel, clock } = this.#options;
    wheel.arm(this.#timer, clock.monotonicMs() + LOOK_MS);
  }
}

function descriptorOfPeer({ socket }: PausedPeer): number {
  return descriptorOf(socket);
}
