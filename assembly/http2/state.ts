// The state of the block at hand, in memory: the module has no globals of its own.

import { STATE } from '../layout/http2';

@inline
export function state(offset: usize): u32 {
  return load<u32>(<usize>STATE + offset);
}

@inline
export function setState(offset: usize, value: u32): void {
  store<u32>(<usize>STATE + offset, value);
}
