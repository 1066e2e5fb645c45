// What somebody has who wants a thing that comes by discovery. Main thread.

export interface Awaited {
  /** It has come, or is waited for no longer. */
  readonly isReady: boolean;
  /** Resolves with that; perhaps never when nobody wants it any more. */
  readonly whenReady: Promise<void>;
}

export interface ResourceLease extends Awaited {
  readonly name: string;
  /** As listings name what is waited for. */
  readonly target: string;
  /** Idempotent. */
  release(): void;
}

/** Of a thing that workers know. */
export interface PublishedLease extends ResourceLease {
  /** By which they know it. */
  readonly id: number;
}

/** Of a thing that is there. */
export const NOT_AWAITED: Awaited = { isReady: true, whenReady: Promise.resolve() };

export function leaseOf<Known extends Pick<ResourceLease, 'name' | 'target'>>(
  known: Known,
  awaited: Awaited,
  release: () => void,
): Known & ResourceLease {
  return {
    ...known,
    get isReady() {
      return awaited.isReady;
    },
    whenReady: awaited.whenReady,
    release,
  };
}

/** Resolves when none of them is missing, or waited for any longer; perhaps never behind their release. */
export async function whenAllReady(leases: readonly Awaited[]): Promise<void> {
  for (const { whenReady } of leases) await whenReady;
}

export function releaseAll(leases: readonly Pick<ResourceLease, 'release'>[]): void {
  for (const lease of leases) lease.release();
}
