//! A network device down, with all its addresses and routes brought back.

use std::net::IpAddr;

use serde::{Deserialize, Serialize};

use super::amount::Name;
use super::{Ground, Lines, No};
use crate::fault::script;

/// What is done to a device.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, schemars::JsonSchema)]
#[serde(deny_unknown_fields, rename_all = "kebab-case")]
pub enum Link {
    /// Down until the heal.
    Down(Name),
}

/// Addresses and routes of a device as text that can be compared: without lifetimes, and without what the kernel keeps
/// by itself.
const STATE: &str = r#"rr_state() {
    ip -o addr show dev "$1" 2>/dev/null | awk '$3 == "inet" || ($3 == "inet6" && $4 !~ /^fe80:/) { print $3, $4 }' | sort
    for rr_f in -4 -6; do
        ip $rr_f route show table all dev "$1" 2>/dev/null |
            grep -v -e 'proto kernel' -e '^fe80:' -e '^ff00:' -e '^multicast' -e '^local' -e '^broadcast' |
            sed -e 's/ expires [0-9]*sec//' -e 's/ linkdown//' -e 's/ dead//' -e "s/^/$rr_f /" -e 's/ *$//' | sort
    done
}
rr_up() {
    case $(ip -o link show dev "$1" 2>/dev/null) in *'<'*UP*'>'*) return 0 ;; esac
    return 1
}
"#;

impl Link {
    /// `devices=all of them`, `up=yes`, `way=DEVICE` for each protected address and the controller.
    pub(super) fn scout(&self, protected: &[IpAddr]) -> String {
        let Self::Down(device) = self;
        let protected: Vec<String> = protected.iter().map(ToString::to_string).collect();
        format!(
            r#"{STATE}echo "devices=$(ip -o link show 2>/dev/null | sed 's/^[0-9]*: \([^:@]*\).*/\1/' | tr '\n' ' ')"
rr_up {device} && echo up=yes
for rr_a in $(rr_client) {}; do
    echo "way=$(ip -o route get "$rr_a" 2>/dev/null | sed -n 's/.* dev \([^ ]*\).*/\1/p')"
done
"#,
            protected.join(" ")
        )
    }

    pub(super) fn lines(&self, ground: &Ground<'_>) -> Result<Lines, No> {
        let Self::Down(device) = self;
        let devices: Vec<&str> =
            script::value(ground.scouted, "devices").unwrap_or_default().split_whitespace().collect();
        if !devices.contains(&device.as_str()) {
            return Err(No::Refused(format!(
                "there is no device {device}; there are: {}",
                devices.join(", ")
            )));
        }
        if script::pairs(ground.scouted).any(|(key, value)| key == "way" && value == device.as_str()) {
            return Err(No::Refused(format!(
                "{device} is the way of the controller, or of a protected address: this would cut the control path"
            )));
        }
        if script::value(ground.scouted, "up") != Some("yes") {
            return Err(No::Refused(format!("{device} is down already")));
        }
        Ok(Lines {
            stage: format!(
                r#"{STATE}ip -4 addr save dev {device} >"$dir/addresses4" && ip -6 addr save dev {device} >"$dir/addresses6" &&
    ip -4 route save table all dev {device} >"$dir/routes4" && ip -6 route save table all dev {device} >"$dir/routes6" ||
    fail 'addresses and routes of {device} could not be saved'
rr_state {device} >"$dir/state"
"#
            ),
            commit: format!(
                ": >\"$dir/down\"\nip link set dev {device} down || bad=\"$bad {device} did not go down;\"\n"
            ),
            // Twice each: a route may need one that comes after it.
            undo: format!(
                r#"{STATE}if [ -e "$dir/down" ]; then
    ip link set dev {device} up
    for rr_turn in 1 2; do
        for rr_f in 4 6; do
            ip addr restore <"$dir/addresses$rr_f" 2>/dev/null
            ip route restore <"$dir/routes$rr_f" 2>/dev/null
        done
    done
fi
"#
            ),
            left: format!(
                r#"if [ -e "$dir/down" ]; then
    rr_up {device} || echo '{device} is not up'
    rr_state {device} >"$dir/state-now"
    while read -r rr_line; do
        grep -qxF -e "$rr_line" "$dir/state-now" || echo "{device} lacks $rr_line"
    done <"$dir/state"
fi
"#
            ),
            look: format!(
                "{STATE}if rr_up {device}; then echo 'sign=no {device} is up'; else echo 'sign=yes {device} is down'; fi\n"
            ),
            ..Lines::default()
        })
    }
}
