// Stats that were looked up by their names, as the admin interface reads and commands it: RecentLookups of src/stats.

export interface LookupsView {
  readonly total: number;
  readonly isCollecting: boolean;
  /** In the order of their counts. */
  readonly names: readonly (readonly [name: string, count: number])[];
  collect(isCollecting: boolean): void;
  /** Forgets the names and their number. */
  clear(): void;
}
