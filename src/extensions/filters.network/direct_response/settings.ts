// What the direct response filter and its configuration share.

export interface DirectResponseSettings {
  readonly response: Uint8Array;
}
