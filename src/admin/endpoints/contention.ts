// GET /contention: waits for locks.

import { endpoint } from '../endpoint.ts';

export const CONTENTION = endpoint({ path: '/contention', help: 'Contention of locks, where it is traced' });
