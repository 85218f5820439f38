use super::*;
use crate::history::foreign::read_operations;

fn said(text: &str) -> String {
    let operations = read_operations(text.as_bytes()).unwrap();
    let checks = check(&operations, &Options::default()).unwrap();
    let line = |c: &CheckResult| format!("{:?} [{}; {}] {}", c.verdict, c.checked, c.evidence, c.sentence);
    checks.iter().map(line).collect::<Vec<_>>().join("\n")
}

#[test]
fn each_kind_of_object_is_told_by_its_functions_and_judged_in_words() {
    let histories = [
        // A register: a read of what a write that failed would have written.
        "{:process 1, :type :invoke, :f :read, :value nil}\n{:process 101, :type :invoke, :f :write, :value 3}\n\
         {:process 101, :type :fail, :f :write, :value 3}\n{:process 1, :type :ok, :f :read, :value 3}",
        // The same, but the write may have happened.
        "{:process 1, :type :invoke, :f :read, :value nil}\n{:process 101, :type :invoke, :f :write, :value 3}\n\
         {:process 101, :type :info, :f :write, :value 3}\n{:process 1, :type :ok, :f :read, :value 3}",
        // A stale read beside an open write.
        "{:process 1, :type :invoke, :f :write, :value 1}\n{:process 1, :type :ok, :f :write, :value 1}\n\
         {:process 2, :type :invoke, :f :write, :value 2}\n{:process 2, :type :ok, :f :write, :value 2}\n\
         {:process 3, :type :invoke, :f :write, :value 3}\n{:process 1, :type :invoke, :f :read, :value nil}\n\
         {:process 1, :type :ok, :f :read, :value 1}",
        // Texts of two keys.
        "{:process 1, :type :invoke, :f :append, :key \"a\", :value \"x\"}\n{:process 1, :type :ok, :f :append, :key \"a\", :value \"x\"}\n\
         {:process 1, :type :invoke, :f :get, :key \"b\"}\n{:process 1, :type :ok, :f :get, :key \"b\", :value \"\"}\n\
         {:process 1, :type :invoke, :f :get, :key \"a\"}\n{:process 1, :type :ok, :f :get, :key \"a\", :value \"\"}",
        // A set that loses an element, and a queue that turns two round.
        "{:process 1, :type :invoke, :f :add, :value 1}\n{:process 1, :type :ok, :f :add, :value 1}\n\
         {:process 1, :type :invoke, :f :read}\n{:process 1, :type :ok, :f :read, :value #{2}}",
        "{:process 1, :type :invoke, :f :enqueue, :value 1}\n{:process 1, :type :ok, :f :enqueue, :value 1}\n\
         {:process 1, :type :invoke, :f :enqueue, :value 2}\n{:process 1, :type :ok, :f :enqueue, :value 2}\n\
         {:process 1, :type :invoke, :f :dequeue}\n{:process 1, :type :ok, :f :dequeue, :value 2}",
        // A mutex held by two.
        "{:process 1, :type :invoke, :f :acquire}\n{:process 1, :type :ok, :f :acquire}\n\
         {:process 2, :type :invoke, :f :acquire}\n{:process 2, :type :ok, :f :acquire}",
        // Registers read together, half of one write and half of another.
        "{:process 1, :type :invoke, :f :txn, :value [[:write :x 1] [:write :y 1]]}\n{:process 1, :type :ok, :f :txn, :value [[:write :x 1] [:write :y 1]]}\n\
         {:process 2, :type :invoke, :f :txn, :value [[:read :x nil] [:read :y nil]]}\n{:process 2, :type :ok, :f :txn, :value [[:read :x 1] [:read :y 2]]}",
        // Not well formed.
        "{:process 1, :type :invoke, :f :write, :value 1}\n{:process 1, :type :invoke, :f :write, :value 1}",
        "",
    ];
    insta::assert_snapshot!(histories.map(said).join("\n\n"));
}

#[test]
fn unknown_functions_are_refused_with_what_there_is() {
    let operations = read_operations(b"{:process 1, :type :invoke, :f :frobnicate}").unwrap();
    let Err(e) = check(&operations, &Options::default()) else { panic!("no kind frobnicates") };
    insta::assert_snapshot!(e.to_string(), @"no kind of object has the functions frobnicate: name one of versioned, cas-register, multi-register, kv, set, queue, mutex");
    assert!("no such".parse::<Kind>().is_err());
    assert_eq!("mutex".parse::<Kind>(), Ok(Kind::Lock));
}

#[test]
fn objects_with_versions_go_to_the_exact_rule_and_keep_their_lines() {
    let text = "{\"rackrift_history\":1,\"origin\":\"\",\"run\":\"r\"}\n\
        {\"note\":{\"time\":0,\"text\":\"first\"}}\n\
        {\"op\":{\"index\":0,\"time\":1,\"process\":1,\"type\":\"invoke\",\"f\":\"create\",\"key\":\"k\",\"value\":{\"id\":\"w0\"}}}\n\
        {\"op\":{\"index\":1,\"time\":2,\"process\":1,\"type\":\"ok\",\"f\":\"create\",\"key\":\"k\",\"value\":{\"id\":\"w0\",\"version\":7}}}\n\
        {\"note\":{\"time\":3,\"text\":\"between\"}}\n\
        {\"op\":{\"index\":2,\"time\":4,\"process\":2,\"type\":\"invoke\",\"f\":\"read\",\"key\":\"k\",\"value\":null}}\n\
        {\"op\":{\"index\":3,\"time\":5,\"process\":2,\"type\":\"ok\",\"f\":\"read\",\"key\":\"k\",\"value\":null}}\n";
    let operations = read_operations(text.as_bytes()).unwrap();
    let checks = check(&operations, &Options::default()).unwrap();
    assert_eq!(checks[1].verdict, Verdict::Fail);
    let lines: Vec<_> = checks[1].witnesses[0].exhibits.iter().map(|e| e.line).collect();
    assert_eq!(lines, [Some(7), Some(4)]);
}
