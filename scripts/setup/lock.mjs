// Has one set-up of a clone work at a time: two terminals may begin with `npm start` at once, and each would take away what the other
// has just made. Plain JavaScript for Node 18 and newer without dependencies.

import * as fs from 'node:fs';

const LOOK_AGAIN_MS = 100;

/**
 * Runs `work` while no other process runs its own under the same file, which holds who does. One that has died is not waited for.
 * @param onWait told once, with the number of the process that is waited for.
 */
export function oneAtATime(file, work, onWait) {
  for (let hasTold = false; !take(file); rest()) {
    const owner = ownerOf(file);
    if (owner === undefined) continue;
    if (!isAlive(owner)) {
      takeAway(file, owner);
    } else if (!hasTold) {
      hasTold = true;
      onWait(owner);
    }
  }
  const release = () => {
    if (ownerOf(file) === process.pid) fs.rmSync(file, { force: true });
  };
  // Work that fails ends the process.
  process.once('exit', release);
  try {
    return work();
  } finally {
    process.off('exit', release);
    release();
  }
}

function take(file) {
  try {
    fs.writeFileSync(file, String(process.pid), { flag: 'wx' });
    return true;
  } catch (error) {
    if (error.code !== 'EEXIST') throw error;
    return false;
  }
}

/** Undefined when it has been released meanwhile. */
function ownerOf(file) {
  try {
    return Number(fs.readFileSync(file, 'utf8'));
  } catch (error) {
    if (error.code !== 'ENOENT') throw error;
    return undefined;
  }
}

function isAlive(pid) {
  // In a container that was killed and has been started again, the one before had the same number.
  if (pid === process.pid) return false;
  try {
    process.kill(pid, 0);
    return true;
  } catch (error) {
    return error.code !== 'ESRCH';
  }
}

/** Moved first: of several that do so, one has it, and sees whether it is still what the dead one has left. */
function takeAway(file, owner) {
  const moved = `${file}.${process.pid}.left`;
  try {
    fs.renameSync(file, moved);
  } catch (error) {
    if (error.code !== 'ENOENT') throw error;
    return;
  }
  if (ownerOf(moved) !== owner) putBack(moved, file);
  fs.rmSync(moved);
}

function putBack(moved, file) {
  try {
    fs.copyFileSync(moved, file, fs.constants.COPYFILE_EXCL);
  } catch (error) {
    if (error.code !== 'EEXIST') throw error;
  }
}

function rest() {
  Atomics.wait(new Int32Array(new SharedArrayBuffer(4)), 0, 0, LOOK_AGAIN_MS);
}
