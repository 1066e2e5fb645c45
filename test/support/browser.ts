// A real browser for tests of the page: Debian's Chromium, driven over its debugging protocol. Tests skip where it is not installed.

import { existsSync } from 'node:fs';
import { type Browser, type BrowserContextOptions, chromium, type Page } from 'playwright-core';

const CHROMIUM = '/usr/bin/chromium';

/** Why browser tests are skipped; false where they run. */
export const NO_BROWSER: string | false = existsSync(CHROMIUM) ? false : `${CHROMIUM} is not installed`;

export async function openBrowser(): Promise<Browser & AsyncDisposable> {
  const args = ['--no-sandbox', '--disable-gpu', '--disable-dev-shm-usage'];
  return chromium.launch({ executablePath: CHROMIUM, args, timeout: 120_000 });
}

export interface WatchedPage extends AsyncDisposable {
  readonly page: Page;
  /** What the console and the page's own errors said. */
  readonly complaints: string[];
}

/** A page of its own, which notes everything that a browser complains of. */
export async function openPage(browser: Browser, options: BrowserContextOptions = {}): Promise<WatchedPage> {
  const context = await browser.newContext(options);
  const page = await context.newPage();
  page.setDefaultTimeout(60_000);
  const complaints: string[] = [];
  page.on('console', (message) => {
    if (message.type() === 'error' || message.type() === 'warning') complaints.push(message.text());
  });
  page.on('pageerror', (error) => complaints.push(String(error)));
  return { page, complaints, [Symbol.asyncDispose]: () => context.close() };
}
