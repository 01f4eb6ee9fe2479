//! The scripts of Redis: it runs each alone, and fences by it. The script that checks the lease also
//! publishes the leader's frames. Every language runs these: Python and Rust from here, JavaScript from what
//! the build writes of this file.
//!
//! A fourth key is given in a cluster. Then a script publishes to one shard, unless a process is there that
//! does not hear that: it says so (`plain`) in this key, whenever it renews or asks the leader.
//!
//! No clock of a process counts. Only the store's `TIME` is read, and only to age a snapshot.

/// A script that publishes, behind what each of them begins with.
macro_rules! publishing {
    ($script:literal) => {
        concat!(
            r"-- Before each script that publishes. The last argument may be `plain`; no channel and no frame is that.
-- `say`: to one shard, or to all. `isOurs`: whether the lease is the holder's, for arguments that begin with
-- holder, its epoch, lease ms. The last one that had it has it still.
if ARGV[#ARGV] == 'plain' then redis.call('SET', KEYS[4], '1', 'PX', 10000) end
local say = KEYS[4] and redis.call('EXISTS', KEYS[4]) == 0 and 'SPUBLISH' or 'PUBLISH'
local function isOurs()
  local holder = redis.call('GET', KEYS[1])
  if holder ~= ARGV[1] then
    if holder and not string.match(holder, ':$') then return end
    if tonumber(redis.call('GET', KEYS[2]) or ARGV[2]) > tonumber(ARGV[2]) then return end
    redis.call('SET', KEYS[1], ARGV[1], 'PX', ARGV[3])
  end
  return 1
end
",
            $script
        )
    };
}

/// Takes the lease that no other process has.
pub const COMPETE: &str = publishing!(
    r"-- Keys: lease, epoch, snapshot, and in a cluster `plain`. Arguments: process, known epoch, lease ms, the
-- leader's channel. Gives epoch, snapshot, age in ms, or nothing where another process has the lease.
--
-- A store that forgot its keys does not know of a leader, which believes in its own lease for as long as it
-- lasts. For that long only the process that had it may have it. A process that knows of none asks whether
-- there is a listener on the leader's channel. If it got the lease all the same, it loses it to the older
-- epoch.
local known = tonumber(ARGV[2])
local epoch, id = string.match(redis.call('GET', KEYS[1]) or '', '^(%d+):(.*)$')
if epoch and id ~= ARGV[1] and tonumber(epoch) >= known then return {} end
local stored = tonumber(redis.call('GET', KEYS[2]) or '0')
local isLost = stored < known
if not epoch and stored + known == 0 then isLost = redis.call(say, ARGV[4], '') > 0 end
if isLost then
  redis.call('SET', KEYS[2], ARGV[2], 'PX', 604800000)
  redis.call('SET', KEYS[1], ARGV[2] .. ':', 'PX', ARGV[3])
  return {}
end
epoch = string.format('%.0f', math.max(stored, known) + 1)
redis.call('SET', KEYS[2], epoch, 'PX', 604800000)
redis.call('SET', KEYS[1], epoch .. ':' .. ARGV[1], 'PX', ARGV[3])
local kept = redis.call('HMGET', KEYS[3], 'bytes', 'at', 'changes')
local all = {kept[1] or ''}
for at = 1, tonumber(kept[3] or '0') do
  all[at + 1] = redis.call('HMGET', KEYS[3], at)[1] or ''
end
local time = redis.call('TIME')
local now = time[1] * 1000 + math.floor(time[2] / 1000)
local age = kept[2] and now - tonumber(kept[2]) or 0
return {epoch, table.concat(all), string.format('%.0f', math.max(age, 0))}
"
);

/// Keeps the lease, and stores a snapshot.
pub const RENEW: &str = publishing!(
    r"-- Keys: lease, epoch, snapshot, and in a cluster `plain`. Arguments: holder, its epoch, lease ms, the
-- snapshot and `plain`, each may be empty. Gives 1 if the lease is the holder's.
--
-- A whole snapshot takes the place of all before it. What changed since is put behind one that is there: its
-- first byte is 128 or more, which base 64 says with a letter from `g` on, a digit, `+` or `/`.
if not isOurs() then return 0 end
redis.call('PEXPIRE', KEYS[1], ARGV[3])
redis.call('SET', KEYS[2], ARGV[2], 'PX', 604800000)
if ARGV[4] ~= '' then
  local time = redis.call('TIME')
  local now = time[1] * 1000 + math.floor(time[2] / 1000)
  local kept = redis.call('HMGET', KEYS[3], 'at', 'changes')
  local at = string.format('%.0f', now)
  if not string.match(ARGV[4], '^[g-z0-9+/]') then
    redis.call('DEL', KEYS[3])
    redis.call('HSET', KEYS[3], 'bytes', ARGV[4], 'at', at)
  elseif kept[1] then
    local changes = tonumber(kept[2] or '0') + 1
    redis.call('HSET', KEYS[3], changes, ARGV[4], 'changes', changes, 'at', at)
  end
  redis.call('PEXPIRE', KEYS[3], 604800000)
end
return 1
"
);

/// Publishes what the leader says.
pub const SEND: &str = publishing!(
    r"-- Keys: those of `RENEW`. Arguments: holder, its epoch, lease ms, then channels with their frames.
-- Gives 0 if the lease is another's, else the places of those without a listener: one node knows that, a
-- cluster does not.
if not isOurs() then return 0 end
local unheard = {}
for at = 4, #ARGV, 2 do
  local heard = redis.call(say, ARGV[at], ARGV[at + 1])
  if heard == 0 and not KEYS[4] then unheard[#unheard + 1] = (at - 4) / 2 end
end
return unheard
"
);

/// Gives the lease back.
pub const RELEASE: &str = r"-- Keys: lease. Arguments: process. Gives back the lease that it has, also one that it has not heard of.
local id = string.match(redis.call('GET', KEYS[1]) or '', '^%d+:(.*)$')
if id == ARGV[1] then redis.call('DEL', KEYS[1]) end
return 1
";

/// Publishes what a member of a cluster says to the leader.
pub const TELL: &str = publishing!(
    r"-- In a cluster. Keys: those of `RENEW`. Arguments: channel, frame, `plain`. Gives how many heard it, as
-- far as one node knows.
local heard = redis.call(say, ARGV[1], ARGV[2])
return say == 'SPUBLISH' and heard or 1
"
);

/// A host's reason where no answer came within a lease.
pub const NO_ANSWER: &str = "Redis has not answered within 1500 ms";
/// The same of a client that wants TLS: a port without it may leave the client's first message unanswered.
pub const NO_ANSWER_BY_TLS: &str = "Redis has not answered within 1500 ms by TLS: does its port speak TLS?";

/// Errors of a store that do not heal by themselves: this user may not, something else has these keys, or the
/// port speaks TLS and the client does not, or the other way round. Of Redis and of its clients, some of
/// which leave the code out.
const FOR_GOOD: [&str; 12] = [
    "NOPERM", "NOAUTH", "WRONGPASS", "WRONGTYPE", "user executing the script can't", "o permissions",
    "uthentication required", "nvalid username-password", "wrong kind of value", "wrong version number",
    "WRONG_VERSION_NUMBER", "packet length too long",
];

/// Whether a failure of the store is one for good: requests are to hear of it, and not to wait.
pub fn is_for_good(why: &str) -> bool {
    FOR_GOOD.iter().any(|words| why.contains(words))
}

#[cfg(test)]
mod tests {
    use super::{NO_ANSWER, NO_ANSWER_BY_TLS, is_for_good};

    #[test]
    fn a_refusal_of_the_store_is_for_good_and_its_absence_is_not() {
        for why in [
            "NOPERM this user has no permissions to run the 'eval' command",
            "ERR The user executing the script can't run this command or subcommand script: 1f, on @user_script:36.",
            "No permissions to access a channel",
            "WRONGPASS invalid username-password pair or user is disabled.",
            "WRONGTYPE Operation against a key holding the wrong kind of value",
            "[SSL: WRONG_VERSION_NUMBER] wrong version number (_ssl.c:1006)",
            "Authentication required.",
        ] {
            assert!(is_for_good(why), "{why}");
        }
        for why in ["connect ECONNREFUSED 127.0.0.1:6379", NO_ANSWER, NO_ANSWER_BY_TLS, "LOADING", ""] {
            assert!(!is_for_good(why), "{why}");
        }
    }
}
