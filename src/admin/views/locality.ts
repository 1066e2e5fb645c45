// Where a host or this node stands.

export interface LocalityView {
  readonly region: string;
  readonly zone: string;
  readonly subZone: string;
}
