//! Deletion below a directory without following links.
//!
//! Each folder on the path is opened relative to its parent and must be a real folder, so that
//! neither a link in the table nor one that appears meanwhile redirects a deletion. The root may be
//! reached through links.

use std::ffi::CString;
use std::io;
use std::os::fd::{AsRawFd, FromRawFd, OwnedFd, RawFd};
use std::os::unix::ffi::OsStrExt;
use std::path::Path;

use super::TablePath;
use super::local_file::link;

/// The directory of deletions.
pub(super) struct DeletionRoot {
    root: OwnedFd,
    /// The folder that was opened last: files of one folder come together.
    last: Option<(String, OwnedFd)>,
}

/// Flag to open a folder for looking up names, which needs no permission to list it.
#[cfg(any(target_os = "linux", target_os = "android"))]
const SEARCH: libc::c_int = libc::O_PATH;
#[cfg(not(any(target_os = "linux", target_os = "android")))]
const SEARCH: libc::c_int = libc::O_RDONLY;

impl DeletionRoot {
    /// The directory at `path`.
    pub(super) fn open(path: &Path) -> io::Result<Self> {
        let root = open_at(
            libc::AT_FDCWD,
            &CString::new(path.as_os_str().as_bytes())?,
            0,
        )?;
        Ok(Self { root, last: None })
    }

    /// Deletes a file, or a link but not its target.
    pub(super) fn unlink(&mut self, path: &TablePath) -> io::Result<()> {
        self.remove(path, 0)
    }

    /// Removes an empty folder.
    pub(super) fn remove_folder(&mut self, path: &TablePath) -> io::Result<()> {
        self.remove(path, libc::AT_REMOVEDIR)
    }

    fn remove(&mut self, path: &TablePath, flags: libc::c_int) -> io::Result<()> {
        let (folder, name) = path.split();
        let name = CString::new(name)?;
        let folder = self.folder(folder)?;
        // SAFETY: the descriptor is open, and the name is a zero-terminated string that lives until
        // the call returns.
        if unsafe { libc::unlinkat(folder, name.as_ptr(), flags) } == 0 {
            Ok(())
        } else {
            Err(io::Error::last_os_error())
        }
    }

    fn folder(&mut self, path: &str) -> io::Result<RawFd> {
        if path.is_empty() {
            return Ok(self.root.as_raw_fd());
        }
        if self.last.as_ref().is_none_or(|(last, _)| last != path) {
            let mut above: Option<OwnedFd> = None;
            for part in path.split('/') {
                let from = above.as_ref().unwrap_or(&self.root).as_raw_fd();
                let part = CString::new(part)?;
                above = Some(
                    open_at(from, &part, libc::O_NOFOLLOW)
                        .map_err(|error| if is_link(from, &part) { link() } else { error })?,
                );
            }
            self.last = above.map(|opened| (path.to_owned(), opened));
        }
        self.last
            .as_ref()
            .map(|(_, opened)| opened.as_raw_fd())
            .ok_or_else(|| io::ErrorKind::NotFound.into())
    }
}

fn open_at(from: RawFd, name: &CString, flags: libc::c_int) -> io::Result<OwnedFd> {
    loop {
        // SAFETY: the name is a zero-terminated string that lives until the call returns.
        let opened = unsafe {
            libc::openat(
                from,
                name.as_ptr(),
                SEARCH | libc::O_DIRECTORY | libc::O_CLOEXEC | flags,
            )
        };
        if opened >= 0 {
            // SAFETY: the descriptor was just opened and has no other owner.
            return Ok(unsafe { OwnedFd::from_raw_fd(opened) });
        }
        let error = io::Error::last_os_error();
        if error.kind() != io::ErrorKind::Interrupted {
            return Err(error);
        }
    }
}

fn is_link(from: RawFd, name: &CString) -> bool {
    let mut found = std::mem::MaybeUninit::<libc::stat>::uninit();
    // SAFETY: the name is a zero-terminated string, and the buffer has the size of what is written;
    // both live until the call returns.
    let result = unsafe {
        libc::fstatat(
            from,
            name.as_ptr(),
            found.as_mut_ptr(),
            libc::AT_SYMLINK_NOFOLLOW,
        )
    };
    // SAFETY: the call succeeded and has filled the buffer.
    result == 0 && unsafe { found.assume_init() }.st_mode & libc::S_IFMT == libc::S_IFLNK
}
