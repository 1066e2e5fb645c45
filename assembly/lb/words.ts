// Two u32 as one u64.

// @ts-ignore: decorator
@inline
export function word(hi: u32, lo: u32): u64 {
  return ((hi as u64) << 32) | (lo as u64);
}
