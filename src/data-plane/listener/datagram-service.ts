// What a listener for datagrams has in the place of connections.

export interface DatagramService {
  readonly sessionCount: number;
  /** @param ports by address; 0 lets the system choose. @returns the bound ones. @throws WeirError WEIR_LISTEN. */
  listen(ports: readonly number[]): Promise<readonly number[]>;
  /** Ends all sessions. Idempotent. */
  stop(): void;
  /** Behind `stop`, once. */
  close(): void;
}
