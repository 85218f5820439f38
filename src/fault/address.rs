//! Address blocks, in the form in which iptables prints them.

use std::fmt;
use std::net::IpAddr;
use std::str::FromStr;

/// An address family.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, serde::Serialize)]
pub enum Family {
    /// IPv4.
    #[serde(rename = "v4")]
    V4,
    /// IPv6.
    #[serde(rename = "v6")]
    V6,
}

impl Family {
    /// Both.
    pub const ALL: [Self; 2] = [Self::V4, Self::V6];

    /// The family of an address.
    #[must_use]
    pub const fn of(address: IpAddr) -> Self {
        match address {
            IpAddr::V4(_) => Self::V4,
            IpAddr::V6(_) => Self::V6,
        }
    }

    /// What the command of that family is called by default.
    #[must_use]
    pub const fn command(self) -> &'static str {
        match self {
            Self::V4 => "iptables",
            Self::V6 => "ip6tables",
        }
    }

    /// What nft calls it.
    #[must_use]
    pub const fn nft(self) -> &'static str {
        match self {
            Self::V4 => "ip",
            Self::V6 => "ip6",
        }
    }
}

impl fmt::Display for Family {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::V4 => "IPv4",
            Self::V6 => "IPv6",
        })
    }
}

/// A block of addresses; bits below the prefix are zero.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Block {
    address: IpAddr,
    prefix: u8,
}

/// Not a block of addresses.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("`{0}` is not an address or a block such as 198.18.1.0/24 or fd00::/64")]
pub struct BadBlock(String);

impl Block {
    /// One address alone.
    #[must_use]
    pub const fn single(address: IpAddr) -> Self {
        let prefix = match address {
            IpAddr::V4(_) => 32,
            IpAddr::V6(_) => 128,
        };
        Self { address, prefix }
    }

    /// Its family.
    #[must_use]
    pub const fn family(self) -> Family {
        Family::of(self.address)
    }

    /// The address, if it is one alone.
    #[must_use]
    pub fn alone(self) -> Option<IpAddr> {
        (self == Self::single(self.address)).then_some(self.address)
    }

    /// Whether the address lies in it.
    #[must_use]
    pub fn contains(self, address: IpAddr) -> bool {
        self.family() == Family::of(address) && masked(address, self.prefix) == self.address
    }

    /// Whether the two have an address in common.
    #[must_use]
    pub fn meets(self, other: Self) -> bool {
        self.contains(other.address) || other.contains(self.address)
    }
}

fn masked(address: IpAddr, prefix: u8) -> IpAddr {
    match address {
        IpAddr::V4(a) => {
            let mask = u32::MAX.checked_shl(32 - u32::from(prefix)).unwrap_or(0);
            IpAddr::V4((u32::from(a) & mask).into())
        }
        IpAddr::V6(a) => {
            let mask = u128::MAX.checked_shl(128 - u32::from(prefix)).unwrap_or(0);
            IpAddr::V6((u128::from(a) & mask).into())
        }
    }
}

impl fmt::Display for Block {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}/{}", self.address, self.prefix)
    }
}

impl From<IpAddr> for Block {
    fn from(address: IpAddr) -> Self {
        Self::single(address)
    }
}

impl serde::Serialize for Block {
    fn serialize<S: serde::Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_str(self)
    }
}

impl<'de> serde::Deserialize<'de> for Block {
    fn deserialize<D: serde::Deserializer<'de>>(d: D) -> Result<Self, D::Error> {
        let text = String::deserialize(d)?;
        text.parse().map_err(serde::de::Error::custom)
    }
}

impl FromStr for Block {
    type Err = BadBlock;

    fn from_str(text: &str) -> Result<Self, BadBlock> {
        let bad = || BadBlock(text.to_owned());
        let Some((address, prefix)) = text.split_once('/') else {
            return Ok(Self::single(text.parse().map_err(|_| bad())?));
        };
        let address: IpAddr = address.parse().map_err(|_| bad())?;
        let prefix: u8 = prefix.parse().map_err(|_| bad())?;
        if prefix > Self::single(address).prefix {
            return Err(bad());
        }
        Ok(Self { address: masked(address, prefix), prefix })
    }
}

/// The address in what an SSH server tells of its peer: without zone, and v4 that came in over a v6 socket as v4.
#[must_use]
pub fn peer_address(text: &str) -> Option<IpAddr> {
    let bare = text.split('%').next().unwrap_or(text);
    Some(bare.parse::<IpAddr>().ok()?.to_canonical())
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn block() -> impl Strategy<Value = Block> {
        prop_oneof![
            (any::<u32>(), 0_u8..=32).prop_map(|(a, p)| format!("{}/{p}", std::net::Ipv4Addr::from(a))),
            (any::<u128>(), 0_u8..=128).prop_map(|(a, p)| format!("{}/{p}", std::net::Ipv6Addr::from(a))),
        ]
        .prop_map(|text| text.parse().unwrap())
    }

    proptest! {
        #[test]
        fn print_and_parse_are_inverse(block in block()) {
            prop_assert_eq!(block.to_string().parse::<Block>().unwrap(), block);
            prop_assert!(block.contains(block.address) && block.meets(block));
        }

        #[test]
        fn meeting_is_mutual(a in block(), b in block()) {
            prop_assert_eq!(a.meets(b), b.meets(a));
        }
    }

    #[test]
    fn addresses_as_ssh_tells_them() {
        assert_eq!(peer_address("fe80::1%eth0"), Some("fe80::1".parse().unwrap()));
        assert_eq!(peer_address("::ffff:198.18.0.1"), Some("198.18.0.1".parse().unwrap()));
        assert_eq!(peer_address("nobody"), None);
        for bad in ["198.18.0.0/33", "fd00::/129", "x/8", "198.18.0.1/", "/8"] {
            assert!(bad.parse::<Block>().is_err(), "{bad}");
        }
    }
}
