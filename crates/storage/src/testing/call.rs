//! The kinds of call that can be counted, and can go wrong.

/// A call to a file system or to one of its files.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Call {
    /// [`File::write_at`](crate::File::write_at).
    Write,
    /// [`File::set_length`](crate::File::set_length).
    SetLength,
    /// [`File::sync`](crate::File::sync).
    Sync,
    /// [`FileSystem::open`](crate::FileSystem::open) of a file that was not there.
    Create,
    /// [`FileSystem::remove`](crate::FileSystem::remove).
    Remove,
    /// [`FileSystem::rename`](crate::FileSystem::rename).
    Rename,
    /// [`FileSystem::sync_directory`](crate::FileSystem::sync_directory).
    SyncDirectory,
    /// [`FileSystem::open`](crate::FileSystem::open) of a file that is there, or should be.
    Open,
    /// [`FileSystem::exists`](crate::FileSystem::exists).
    Exists,
    /// [`FileSystem::list`](crate::FileSystem::list).
    List,
    /// [`FileSystem::lock`](crate::FileSystem::lock).
    Lock,
    /// [`File::read_at`](crate::File::read_at) and [`File::read_shared`](crate::File::read_shared).
    Read,
    /// [`File::length`](crate::File::length).
    Length,
}

impl Call {
    /// Every kind.
    pub const ALL: [Call; 13] = [
        Call::Write,
        Call::SetLength,
        Call::Sync,
        Call::Create,
        Call::Remove,
        Call::Rename,
        Call::SyncDirectory,
        Call::Open,
        Call::Exists,
        Call::List,
        Call::Lock,
        Call::Read,
        Call::Length,
    ];

    /// Whether it changes what later calls see.
    pub fn is_change(self) -> bool {
        matches!(self, Call::Write | Call::SetLength | Call::Create | Call::Remove | Call::Rename)
    }

    /// Whether it makes changes durable.
    pub fn is_sync(self) -> bool {
        matches!(self, Call::Sync | Call::SyncDirectory)
    }
}
