//! Names, keys and ids of any bytes and any length.

use std::collections::BTreeSet;

use pinpriq_proto::wire::resp::Value;

use super::client::{elements, receipt, show, with_clients};
use crate::world::in_memory;

#[test]
fn names_keys_and_ids_have_a_longest() {
    with_clients(in_memory(), async |_, [client]| {
        client.ask("QUEUE CREATE given IDS given").await;
        let long = vec![0xFF; 65_536];
        let (longest, id) = (&long[1..], &long[..255]);
        let told = client.ask_words(&[b"PUT", &long, b"p"]).await;
        assert_eq!(show(&told), "BADARG");
        let told = client.ask_words(&[b"PUT", b"q", b"p", b"KEY", &long]).await;
        assert_eq!(show(&told), "BADARG");
        let told = client.ask_words(&[b"PUT", b"given", b"p", b"ID", &long[..256]]).await;
        assert_eq!(show(&told), "BADARG");
        let told = client.ask_words(&[b"GET", b"given", &long[..256]]).await;
        assert_eq!(show(&told), "BADARG");
        let told = client.ask_words(&[b"TAKE", b"QUEUES", b"2", b"given", &long]).await;
        assert_eq!(show(&told), "BADARG");
        let told = client.ask_words(&[b"PUT", longest, b"p", b"KEY", longest]).await;
        assert_eq!(show(&told), "1");
        let taken =
            client.ask_words(&[b"TAKE", b"QUEUES", b"2", b"nothing", longest, b"GROUP"]).await;
        assert_eq!(elements(&elements(&taken)[0])[0].as_bytes(), Some(longest));
        let told = client.ask_words(&[b"ACK", longest, receipt(&taken).as_bytes()]).await;
        assert_eq!(show(&told), "OK");
        let told = client.ask_words(&[b"PUT", b"given", b"p", b"ID", id]).await;
        assert_eq!(told.as_bytes(), Some(id));
        assert_eq!(show(&client.ask_words(&[b"KILL", b"given", id]).await), "1");
        client.ask("PUT q p").await;
        client.ask("TAKE q").await;
        let told = client.ask_words(&[b"BURY", b"q", b"ID", b"2", b"REASON", &long]).await;
        assert_eq!(show(&told), "BADARG");
    });
}

#[test]
fn uuids_are_told_and_understood_as_text() {
    with_clients(in_memory(), async |_, [client]| {
        client.ask("QUEUE CREATE u IDS uuid").await;
        let mut ids = BTreeSet::new();
        for _ in 0..100 {
            let id = client.reply("PUT u p").await;
            let lengths: Vec<usize> = id.split('-').map(str::len).collect();
            assert_eq!(lengths, [8, 4, 4, 4, 12], "{id}");
            assert_eq!(&id[14..15], "7", "{id}");
            assert!(matches!(&id[19..20], "8" | "9" | "a" | "b"), "{id}");
            assert!(ids.insert(id));
        }
        let taken = client.ask("TAKE u").await;
        let id = show(&elements(&elements(&taken)[0])[1]);
        assert_eq!(client.reply(&format!("ACK u ID {id}")).await, "OK");
        assert_eq!(client.reply(&format!("GET u {id}")).await, "null");
        assert!(ids.remove(&id));
        let other = ids.last().unwrap();
        assert_eq!(client.reply(&format!("KILL u {other} nonsense 5")).await, "1");
    });
}

#[test]
fn pages_of_names_are_complete_and_in_order() {
    with_clients(in_memory(), async |_, [client]| {
        let mut names = BTreeSet::new();
        let mut number = 1_u64;
        while names.len() < 300 {
            number = number.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(99);
            let bytes = number.to_be_bytes();
            let length = usize::from(bytes[7] % 8);
            names.insert(bytes[..length].to_vec());
        }
        for name in &names {
            assert!(matches!(client.ask_words(&[b"PUT", name, b"p"]).await, Value::Bulk(_)));
        }
        for count in [1, 7, 100, 299, 300, 1_000] {
            let (mut seen, mut cursor) = (Vec::new(), "0".to_owned());
            loop {
                let line = format!("QUEUE LIST COUNT {count} CURSOR {cursor}");
                let page = client.ask(&line).await;
                let [next, page] = elements(&page) else { panic!("two, not {page:?}") };
                let page = elements(page).iter().map(|name| name.as_bytes().unwrap().to_vec());
                let before = seen.len();
                seen.extend(page);
                assert!(seen.len() > before, "no page is empty");
                cursor = show(next);
                if cursor == "0" {
                    break;
                }
                assert_eq!(seen.len(), before + count);
            }
            assert!(seen.iter().eq(&names), "count {count}");
        }
    });
}
