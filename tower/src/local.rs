//! The way between processes of one machine, by a Unix socket: the process that listens there leads.
//!
//! The files, their names and the frames are those of `js/shared/socket.ts`, which explains them. All that
//! happens is decided in one task, the group's; a connection has two more, which only carry bytes.
//!
//! The cases are the same, too: the socket of a process that was killed, which stays and refuses; two that
//! find it at once; a process that is stopped, for which the system accepts; a folder that another user made.

use std::{
    collections::BTreeMap,
    env, fs, io,
    os::unix::{
        ffi::OsStrExt,
        fs::{DirBuilderExt, MetadataExt, OpenOptionsExt, PermissionsExt},
    },
    path::{Path, PathBuf},
    sync::{
        Arc,
        atomic::{AtomicUsize, Ordering},
    },
    time::Duration,
};

use autothrottle::Span;
use autothrottle_shared::{Effect, Epoch, MemberId, Offline, is_change};
use tokio::{
    io::{AsyncReadExt, AsyncWriteExt, BufReader},
    net::{
        UnixListener, UnixStream,
        unix::{OwnedReadHalf, OwnedWriteHalf},
    },
    sync::mpsc::{UnboundedReceiver, UnboundedSender, unbounded_channel},
    task::{AbortHandle, JoinSet},
    time::{Instant, sleep, timeout},
};

use crate::event::{Event, FailureCause, Joins, LEASE, SocketEvent, joins};

/// A lock that is seen for so long was left behind.
const LOCK: Duration = Duration::from_secs(2);
/// No frame is longer, in bytes: a process that sends one is cut off.
const MOST_BYTES: usize = 1 << 20;
/// The bytes that a process may leave unread: then it is cut off.
const MOST_UNREAD: usize = 64 << 20;

/// Processes of one machine that share their limits: those of this user with the same name, in Rust and Node.
///
/// ```no_run
/// use autothrottle_tower::{Local, Options, Throttle};
///
/// # fn made() -> Result<Throttle, Box<dyn std::error::Error>> {
/// let options = Options { rate: Some(5.into()), ..Options::default() };
/// let throttle = Throttle::shared(options, Local::new("crawl"))?;
/// # Ok(throttle)
/// # }
/// ```
///
/// Give all processes the same options. Feature `local`, on Unix.
#[derive(Clone, Debug)]
pub struct Local {
    pub(crate) folder: Option<PathBuf>,
    pub(crate) joins: Joins,
}

impl Local {
    /// The group of this name.
    pub fn new(name: impl Into<String>) -> Self {
        Self { folder: None, joins: Joins::new(name.into()) }
    }

    /// The folder of the socket, made if it is not there, for this user alone. By default it is
    /// `autothrottle-` and the user's number, in `XDG_RUNTIME_DIR` or in the folder for temporary files.
    #[must_use]
    pub fn folder(self, folder: impl Into<PathBuf>) -> Self {
        Self { folder: Some(folder.into()), ..self }
    }
}

joins!(Local);

/// How this process speaks to the others.
pub(crate) struct Transport {
    name: String,
    chosen: Option<PathBuf>,
    id: MemberId,
    path: Option<PathBuf>,
    is_open: bool,
    /// The connection to the leader, what lay there when it was made, and when it was last heard.
    leader: Option<Pipe>,
    found: Option<u64>,
    heard_at: Instant,
    /// Where this process listens, and what lies there then.
    server: Option<Server>,
    members: BTreeMap<MemberId, Pipe>,
    /// Those that have not said their names.
    strangers: BTreeMap<u64, Pipe>,
    /// The lock of another process, and since when this one sees it.
    locked: Option<((u64, i64, i64), Instant)>,
    pipes: u64,
    /// The tasks that still write.
    writers: JoinSet<()>,
}

struct Server {
    inode: Option<u64>,
    task: AbortHandle,
}

impl Drop for Server {
    fn drop(&mut self) {
        self.task.abort();
    }
}

/// Permission to lead.
struct Lease {
    epoch: Epoch,
    stored: Option<(Vec<u8>, Span)>,
    is_first: bool,
}

impl Transport {
    pub fn new(name: &str, chosen: Option<PathBuf>, id: MemberId) -> Self {
        Self {
            name: socket_name(name),
            chosen,
            id,
            path: None,
            is_open: false,
            leader: None,
            found: None,
            heard_at: Instant::now(),
            server: None,
            members: BTreeMap::new(),
            strangers: BTreeMap::new(),
            locked: None,
            pipes: 0,
            writers: JoinSet::new(),
        }
    }

    pub async fn say(&mut self, says: Vec<Effect>, events: &UnboundedSender<Event>) {
        while self.writers.try_join_next().is_some() {}
        let send_now = |heard| _ = events.send(heard);
        for effect in says {
            if !std::mem::replace(&mut self.is_open, true) {
                send_now(Event::Opened);
            }
            match effect {
                Effect::Compete { op, above } => send_now(match self.compete(above, events).await {
                    Ok(Some(Lease { epoch, stored, is_first })) => {
                        Event::Elected { op, epoch, stored, is_first }
                    }
                    Ok(None) => Event::Refused(op),
                    Err(why) => Event::Failed(op, why),
                }),
                Effect::Renew { op, store, .. } => send_now(match self.renew(store) {
                    Ok(true) => Event::Renewed(op),
                    Ok(false) => Event::Refused(op),
                    Err(why) => Event::Failed(op, why),
                }),
                Effect::Release { op, store, .. } => send_now(match self.release(store) {
                    Ok(()) => Event::Released(op),
                    Err(why) => Event::Failed(op, why),
                }),
                Effect::ToLeader(bytes) if self.server.is_some() => send_now(Event::Frame(bytes)),
                Effect::ToLeader(bytes) => {
                    if let Some(leader) = &self.leader {
                        leader.say(&bytes, events);
                    }
                }
                Effect::ToMember { epoch, .. } | Effect::ToAll { epoch, .. } if !self.is_held() => {
                    self.stop();
                    send_now(Event::Fenced(epoch));
                }
                Effect::ToMember { epoch, to, bytes } => match self.members.get(&to) {
                    Some(member) => member.say(&bytes, events),
                    None => send_now(Event::Unheard(to, epoch)),
                },
                Effect::ToAll { bytes, .. } => {
                    self.members.values().for_each(|member| member.say(&bytes, events));
                    send_now(Event::Frame(bytes));
                }
                // A stream breaks or is whole: one to a process that is stopped would be no better.
                _ => {}
            }
        }
    }

    pub fn hear(&mut self, heard: Event, events: &UnboundedSender<Event>) -> Option<Event> {
        let Event::Socket(happened) = heard else { return Some(heard) };
        let leads = |way: &Self, number| way.leader.as_ref().is_some_and(|pipe| pipe.number == number);
        match happened {
            SocketEvent::Connected(stream) => {
                let pipe = self.pipe(stream, events);
                self.strangers.insert(pipe.number, pipe);
                None
            }
            SocketEvent::Received(number, bytes) => {
                let Some(pipe) = self.strangers.remove(&number) else {
                    if leads(self, number) {
                        self.heard_at = Instant::now();
                    }
                    return Some(Event::Frame(bytes));
                };
                // The first frame of a member is its name.
                let id = MemberId(bytes.try_into().ok()?);
                self.members.insert(id, pipe);
                None
            }
            SocketEvent::Closed(number) if leads(self, number) => {
                self.leader = None;
                // One that was replaced lets go as well, and lives.
                Some(Event::Vacant { has_ended: inode(self.path.as_deref()?) == self.found })
            }
            SocketEvent::Closed(number) => {
                self.strangers.remove(&number);
                let member = self.members.iter().find(|(_, pipe)| pipe.number == number);
                let id = member.map(|(id, _)| *id)?;
                self.members.remove(&id);
                Some(Event::Gone(id))
            }
        }
    }

    pub async fn close(mut self) {
        self.leader = None;
        self.stop();
        let _ = timeout(LEASE, async { while self.writers.join_next().await.is_some() {} }).await;
    }

    async fn compete(
        &mut self,
        above: Epoch,
        events: &UnboundedSender<Event>,
    ) -> Result<Option<Lease>, FailureCause> {
        // Each time: a cleaner of temporary files, or a logout, takes the folder away.
        let path = self.path.insert(self.make_path()?).clone();
        // A process that competes leads no longer, though it may listen still.
        self.stop();
        if !self.is_silent(&path, events).await.map_err(|error| broken(&error))? {
            return Ok(None);
        }
        let own = self.own(&path);
        let _ = fs::remove_file(&own);
        let listener = UnixListener::bind(&own).map_err(|error| why(&error, &own))?;
        let claimed = self.claim(&path, &own, above);
        if let Ok(Some((lease, inode))) = claimed {
            let events = events.clone();
            let task = tokio::spawn(welcome(listener, events)).abort_handle();
            self.server = Some(Server { inode, task });
            self.leader = None;
            return Ok(Some(lease));
        }
        let _ = fs::remove_file(&own);
        claimed.map_err(|error| why(&error, &path))?;
        self.connect(&path, events).await.map_err(|error| broken(&error))?;
        Ok(None)
    }

    fn renew(&mut self, store: Option<Vec<u8>>) -> Result<bool, FailureCause> {
        let is_ours = self.is_held();
        if !is_ours {
            self.stop();
        } else if let (Some(store), Some(path)) = (store, &self.path) {
            write_state(path, &self.own(path), &store).map_err(|error| why(&error, path))?;
        }
        Ok(is_ours)
    }

    fn release(&mut self, store: Option<Vec<u8>>) -> Result<(), FailureCause> {
        let is_ours = self.renew(store)?;
        self.stop();
        if let (true, Some(path)) = (is_ours, &self.path) {
            let _ = fs::remove_file(path);
        }
        Ok(())
    }

    /// Whether no process answers there, or the one that does has been silent for a lease.
    async fn is_silent(&mut self, path: &Path, events: &UnboundedSender<Event>) -> io::Result<bool> {
        if self.leader.is_some() && inode(path) == self.found {
            return Ok(self.heard_at.elapsed() >= LEASE);
        }
        // No leader is connected, or another made its socket anew.
        self.leader = None;
        Ok(!self.connect(path, events).await?)
    }

    async fn connect(&mut self, path: &Path, events: &UnboundedSender<Event>) -> io::Result<bool> {
        use io::ErrorKind::{BrokenPipe, ConnectionRefused, ConnectionReset, NotFound};
        self.found = inode(path);
        let stream = match UnixStream::connect(path).await {
            Ok(stream) => stream,
            Err(error) => {
                let has_nobody = [NotFound, ConnectionRefused, ConnectionReset, BrokenPipe];
                return if has_nobody.contains(&error.kind()) { Ok(false) } else { Err(error) };
            }
        };
        let leader = self.pipe(stream, events);
        leader.say(&self.id.0, events);
        self.heard_at = Instant::now();
        self.leader = Some(leader);
        Ok(true)
    }

    /// Puts the socket where others look for it, if no other has.
    fn claim(&mut self, path: &Path, own: &Path, above: Epoch) -> io::Result<Option<(Lease, Option<u64>)>> {
        let Some(_lock) = self.lock(&beside(path, "lock"))? else { return Ok(None) };
        if inode(path) != self.found {
            return Ok(None);
        }
        let file = beside(path, "epoch");
        let known = fs::read_to_string(&file).ok().and_then(|text| text.parse().ok()).unwrap_or(0);
        let epoch = above.max(known) + 1;
        write(&file, epoch.to_string().as_bytes())?;
        fs::set_permissions(own, fs::Permissions::from_mode(0o600))?;
        // Before it is there: what lies there later may be another's.
        let inode = inode(own);
        fs::rename(own, path)?;
        let is_first = known == 0 && self.found.is_none();
        Ok(Some((Lease { epoch, stored: read_state(path)?, is_first }, inode)))
    }

    fn lock(&mut self, path: &Path) -> io::Result<Option<Lock>> {
        for _ in 0..2 {
            match fs::OpenOptions::new().write(true).create_new(true).mode(0o600).open(path) {
                Ok(_) => {
                    self.locked = None;
                    return Ok(Some(Lock(path.into())));
                }
                Err(error) if error.kind() != io::ErrorKind::AlreadyExists => return Err(error),
                Err(_) => {}
            }
            // Its age is what this process has seen of it: a file's time is a wall clock's.
            let Ok(lock) = fs::metadata(path) else { return Ok(None) };
            let is = (lock.ino(), lock.mtime(), lock.mtime_nsec());
            let seen = self.locked.filter(|(before, _)| *before == is);
            let (_, since) = *self.locked.insert(seen.unwrap_or_else(|| (is, Instant::now())));
            if since.elapsed() < LOCK {
                return Ok(None);
            }
            fs::remove_file(path)?;
        }
        Ok(None)
    }

    fn is_held(&self) -> bool {
        let at = self.path.as_deref().and_then(inode);
        self.server.as_ref().is_some_and(|server| server.inode == at)
    }

    /// Listens no longer.
    fn stop(&mut self) {
        self.server = None;
        self.members.clear();
        self.strangers.clear();
    }

    /// Where a socket of this process lies that no other knows yet.
    fn own(&self, path: &Path) -> PathBuf {
        beside(path, &self.id.to_string())
    }

    /// Where the socket is: a folder for this user alone. A look at it takes a few microseconds.
    fn make_path(&self) -> Result<PathBuf, FailureCause> {
        let denied =
            |want: &str, got: String| FailureCause::Denied(format!("folder: want {want}; got {got}"));
        let want = "a folder of this user's that no other user may open (0700)";
        let user = user().map_err(|error| broken(&error))?;
        let folder = self.chosen.clone().unwrap_or_else(|| above().join(format!("autothrottle-{user}")));
        let made = fs::DirBuilder::new().recursive(true).mode(0o700).create(&folder);
        let is = made.and_then(|()| fs::symlink_metadata(&folder));
        let is = is.map_err(|error| denied(want, format!("{}: {error}", folder.display())))?;
        if is.uid() != user || is.mode() & 0o077 != 0 || !is.is_dir() {
            let mode = is.mode() & 0o777;
            let got = format!("{} (mode {mode:o}, of user {})", folder.display(), is.uid());
            return Err(denied(want, got));
        }
        let path = folder.join(&self.name);
        let bytes = self.own(&path).as_os_str().as_bytes().len();
        let most = if cfg!(target_os = "linux") { 107 } else { 103 };
        if bytes > most {
            let want = format!("a path that is shorter by {} bytes, for a socket's has {most}", bytes - most);
            return Err(denied(&want, path.display().to_string()));
        }
        Ok(path)
    }

    fn pipe(&mut self, stream: UnixStream, events: &UnboundedSender<Event>) -> Pipe {
        self.pipes += 1;
        let number = self.pipes;
        let (from, to) = stream.into_split();
        let (says, waiting) = unbounded_channel();
        let unread = Arc::new(AtomicUsize::new(0));
        let writer = self.writers.spawn(write_all(to, waiting, unread.clone()));
        let reader = tokio::spawn(read_all(number, from, events.clone())).abort_handle();
        Pipe { number, says, unread, reader, writer }
    }
}

/// A connection. Dropped, it writes what it was given, and ends.
struct Pipe {
    number: u64,
    says: UnboundedSender<Vec<u8>>,
    unread: Arc<AtomicUsize>,
    reader: AbortHandle,
    writer: AbortHandle,
}

impl Pipe {
    /// A frame behind its length. A process that does not read is cut off.
    fn say(&self, frame: &[u8], events: &UnboundedSender<Event>) {
        let length = u32::try_from(frame.len()).expect("a frame has a mebibyte at most");
        let bytes = [&length.to_be_bytes(), frame].concat();
        let unread = self.unread.fetch_add(bytes.len(), Ordering::Relaxed);
        if unread > MOST_UNREAD {
            self.writer.abort();
            let _ = events.send(Event::Socket(SocketEvent::Closed(self.number)));
        }
        let _ = self.says.send(bytes);
    }
}

impl Drop for Pipe {
    fn drop(&mut self) {
        self.reader.abort();
    }
}

async fn welcome(listener: UnixListener, events: UnboundedSender<Event>) {
    loop {
        match listener.accept().await {
            Ok((stream, _)) => _ = events.send(Event::Socket(SocketEvent::Connected(stream))),
            // Too many files are open, for the moment.
            Err(_) => sleep(LEASE / 5).await,
        }
    }
}

async fn read_all(number: u64, from: OwnedReadHalf, events: UnboundedSender<Event>) {
    let mut from = BufReader::new(from);
    while let Ok(frame) = read(&mut from).await {
        let _ = events.send(Event::Socket(SocketEvent::Received(number, frame)));
    }
    let _ = events.send(Event::Socket(SocketEvent::Closed(number)));
}

async fn read(from: &mut BufReader<OwnedReadHalf>) -> io::Result<Vec<u8>> {
    let length = from.read_u32().await? as usize;
    if length > MOST_BYTES {
        return Err(io::ErrorKind::InvalidData.into());
    }
    let mut frame = vec![0; length];
    from.read_exact(&mut frame).await?;
    Ok(frame)
}

async fn write_all(
    mut to: OwnedWriteHalf,
    mut waiting: UnboundedReceiver<Vec<u8>>,
    unread: Arc<AtomicUsize>,
) {
    let mut frames = Vec::new();
    while waiting.recv_many(&mut frames, 256).await > 0 {
        let bytes = frames.concat();
        frames.clear();
        if to.write_all(&bytes).await.is_err() {
            return;
        }
        unread.fetch_sub(bytes.len(), Ordering::Relaxed);
    }
}

/// The lock of a socket's place, for the moment of putting a new one there.
struct Lock(PathBuf);

impl Drop for Lock {
    fn drop(&mut self) {
        let _ = fs::remove_file(&self.0);
    }
}

fn beside(path: &Path, end: &str) -> PathBuf {
    let mut beside = path.as_os_str().to_owned();
    beside.push(".");
    beside.push(end);
    beside.into()
}

fn inode(path: &Path) -> Option<u64> {
    fs::metadata(path).ok().map(|file| file.ino())
}

fn write(path: &Path, bytes: &[u8]) -> io::Result<()> {
    let mut options = fs::OpenOptions::new();
    let mut file = options.write(true).create(true).truncate(true).mode(0o600).open(path)?;
    io::Write::write_all(&mut file, bytes)
}

/// Whole or not at all: no process reads a half. Changes are appended.
fn write_state(path: &Path, own: &Path, store: &[u8]) -> io::Result<()> {
    if is_change(store) {
        return match fs::OpenOptions::new().append(true).open(beside(path, "state")) {
            Ok(mut file) => io::Write::write_all(&mut file, store),
            Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(()),
            Err(error) => Err(error),
        };
    }
    let half = beside(own, "state");
    write(&half, store)?;
    fs::rename(half, beside(path, "state"))
}

/// The state that the last leader stored, and its age.
fn read_state(path: &Path) -> io::Result<Option<(Vec<u8>, Span)>> {
    let file = beside(path, "state");
    let Ok(bytes) = fs::read(&file) else { return Ok(None) };
    let age = fs::metadata(&file)?.modified()?.elapsed().unwrap_or_default();
    Ok(Some((bytes, Span::from_millis(age.as_secs_f64() * 1000.0))))
}

/// The number of this user: the system says who has made a pair of sockets.
fn user() -> io::Result<u32> {
    Ok(UnixStream::pair()?.0.peer_cred()?.uid())
}

/// The folder above the socket's own, as Node finds it.
fn above() -> PathBuf {
    let set = |name| env::var_os(name).filter(|value| !value.is_empty());
    let found = ["XDG_RUNTIME_DIR", "TMPDIR", "TMP", "TEMP"].into_iter().find_map(set);
    found.map_or_else(|| "/tmp".into(), PathBuf::from)
}

/// A name that fits: what can be read of it, and a number for all of it. A socket's path is short.
fn socket_name(name: &str) -> String {
    let is_word = |letter: char| letter.is_ascii_alphanumeric() || letter == '_' || letter == '-';
    let mut readable = String::new();
    for letter in name.chars() {
        if is_word(letter) {
            readable.push(letter);
        } else if !readable.ends_with('\0') {
            readable.push('\0');
        }
    }
    let readable: String = readable.replace('\0', "-").chars().take(24).collect();
    // FNV-1a: to tell names apart, not to keep anything secret.
    let hash = name
        .encode_utf16()
        .fold(0x811c_9dc5, |hash: u32, unit| (hash ^ u32::from(unit)).wrapping_mul(0x0100_0193));
    format!("{readable}-{hash:x}")
}

fn broken(error: &io::Error) -> FailureCause {
    FailureCause::Broken(error.to_string())
}

/// The same error, or one that says that it will not heal by itself.
fn why(error: &io::Error, path: &Path) -> FailureCause {
    use io::ErrorKind::{InvalidFilename, PermissionDenied, ReadOnlyFilesystem, Unsupported};
    if [InvalidFilename, PermissionDenied, ReadOnlyFilesystem, Unsupported].contains(&error.kind()) {
        let want = "a folder in which this process may make sockets and files";
        FailureCause::Denied(format!("folder: want {want}; got {}: {error}", path.display()))
    } else {
        broken(error)
    }
}

#[cfg(test)]
mod tests {
    use super::socket_name;

    /// The name that `js/shared/node.ts` makes of them.
    #[test]
    fn a_socket_has_the_name_that_node_gives_it() {
        let names = [
            ("crawl", "crawl-1e565680"),
            ("my crawl: api.example/äöü €  😀 and a long name of it", "my-crawl-api-example-and-8803c733"),
            ("", "-811c9dc5"),
            ("a b", "a-b-10a3f9f2"),
            ("😀😀x", "-x-768943af"),
        ];
        for (name, socket) in names {
            assert_eq!(socket_name(name), socket);
        }
    }
}
