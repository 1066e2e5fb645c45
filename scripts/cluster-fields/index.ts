// What docs/cluster.md says of each field of a cluster beside its support: what it does, what holds without it, and which
// test shows it. Keys are those of the support table.

import { BALANCING_NOTES } from './balancing.ts';
import { OWN_NOTES } from './cluster.ts';
import { CONNECTIONS_NOTES } from './connections.ts';
import { HEALTH_NOTES } from './health.ts';
import { MEMBERS_NOTES } from './members.ts';
import type { MessageNotes } from './note.ts';
import { REQUESTS_NOTES } from './requests.ts';
import { TLS_NOTES } from './tls.ts';

export type { FieldNote, MessageNotes } from './note.ts';

export const CLUSTER_NOTES: Readonly<Record<string, MessageNotes>> = {
  ...OWN_NOTES,
  ...MEMBERS_NOTES,
  ...BALANCING_NOTES,
  ...HEALTH_NOTES,
  ...CONNECTIONS_NOTES,
  ...REQUESTS_NOTES,
  ...TLS_NOTES,
};
