//! What can be read of the logs without seizing them.

use pinpriq_cluster::remote::LogState;
use pinpriq_store::ledger::Seq;

use crate::etcd::cluster::Cluster;
use crate::etcd::logs::Log;

#[test]
fn what_logs_have_come_to_is_read_without_changing_anything() {
    let Some(cluster) = Cluster::start() else { return };
    let client = cluster.client(cluster.options());
    let states = || client.runtime.block_on(client.etcd.log_states(70)).unwrap();
    assert_eq!(states(), vec![None; 70]);
    let mut log = Log::seize(&client, 65, 7);
    log.fill(5);
    log.trim(4);
    let expected = LogState { tenure: log.tenure, head: Seq(5), first: Seq(4) };
    for _ in 0..2 {
        let states = states();
        assert_eq!(states.len(), 70);
        let seized: Vec<usize> = (0..70).filter(|&shard| states[shard].is_some()).collect();
        assert_eq!(seized, [65]);
        assert_eq!(states[65], Some(expected));
    }
    // The owner still has its tenure.
    log.fill(1);
}
