// /memory, by GET or POST: memory in use.

import { endpoint } from '../endpoint.ts';

export const MEMORY = endpoint({ path: '/memory', help: 'Memory in use' });
