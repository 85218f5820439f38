//! A plan as people read it: who no longer hears whom, and for each host every command and its undo.

use std::fmt;

use super::plan::Plan;

impl fmt::Display for Plan {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        writeln!(
            f,
            "fault {} ({}): {} directed edges on {} hosts",
            self.name,
            self.id,
            self.edges.len(),
            self.hosts.len()
        )?;
        writeln!(f, "a host that hears nothing of its controller for {} s undoes it by itself", self.ttl_s)?;
        self.matrix(f)?;
        writeln!(f, "\nnever matched by a rule:")?;
        for (address, why) in &self.protected {
            writeln!(f, "  {address}  {why}")?;
        }
        for warning in &self.warnings {
            writeln!(f, "note: {warning}")?;
        }
        for (host, plan) in &self.hosts {
            writeln!(f, "\n{host}: staged (nothing acts yet)")?;
            indented(f, &plan.part.stage)?;
            writeln!(f, "{host}: committed")?;
            indented(f, &plan.part.commit)?;
            writeln!(f, "{host}: undone")?;
            indented(f, &plan.part.undo)?;
        }
        Ok(())
    }
}

impl Plan {
    /// Rows hear columns: `.` yes, `x` no.
    fn matrix(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let names: Vec<&String> = self.hosts.keys().collect();
        let width = names.iter().map(|n| n.len()).max().unwrap_or_default().max(2);
        writeln!(f, "\nwho is heard by whom (row to column; x: no longer):")?;
        write!(f, "  {:width$}", "")?;
        for to in &names {
            write!(f, " {to:>width$}")?;
        }
        writeln!(f)?;
        for from in &names {
            write!(f, "  {from:width$}")?;
            for to in &names {
                let mark = match (from == to, self.heard(from, to)) {
                    (true, _) => "",
                    (false, true) => ".",
                    (false, false) => "x",
                };
                write!(f, " {mark:>width$}")?;
            }
            writeln!(f)?;
        }
        Ok(())
    }
}

fn indented(f: &mut fmt::Formatter<'_>, script: &str) -> fmt::Result {
    script.lines().try_for_each(|line| writeln!(f, "    {line}"))
}
