// GET /page/loggers: the loggers that there are, each with its level. POST /logging lists them too, but GET must not change a thing.

import type { LoggerLevel } from '../../../page/data.ts';
import { endpoint } from '../../endpoint.ts';
import { pageJson } from './page-json.ts';

export const PAGE_LOGGERS = endpoint({
  path: '/page/loggers',
  help: 'Loggers with their levels',
  handle({ loggers }) {
    const body: readonly LoggerLevel[] = loggers.list().map(({ name, level }) => ({ name, level }));
    return pageJson(body);
  },
});
