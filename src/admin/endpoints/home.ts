// GET /: the home page.

import { endpoint } from '../endpoint.ts';
import { homePage } from '../render/home-page.ts';

export const HOME = endpoint({
  path: '/',
  help: 'Home page of the admin interface',
  handle: ({ server }, _parameters, request) => homePage(server, request, { view: 'overview' }),
});
