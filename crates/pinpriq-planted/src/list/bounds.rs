//! The bugs about what clients can make the server keep and do.

/// Lists these bugs, and those of figures and others, after others.
macro_rules! with_those_of_bounds {
    ($($others:tt)*) => {
        with_those_of_figures! {
            $($others)*
            NamesInSettingsFree "names-in-settings-free"
                "The names in the settings of queues do not count as memory."
                [Engine("room::")]
            PageOfAnyLength "page-of-any-length"
                "A page of names may have any number of bytes."
                [Engine("bounds::pages_")]
            TransactionCopiesUnbounded "transaction-copies-unbounded"
                "A transaction may publish any number of copies in one step."
                [Engine("bounds::a_transaction")]
            LanesUnbounded "lanes-unbounded"
                "A topic may have any number of lanes, which one publication fills in one step."
                [Engine("bounds::a_topic")]
            OriginsFree "origins-free"
                "What is kept of where a dead letter comes from does not count as memory."
                [Engine("bounds::dead_letters")]
            ClientNameUnbounded "client-name-unbounded"
                "A client may give itself a name of any length."
                [Server("resp::bounds::")]
            KeptBytesUnbounded "kept-bytes-unbounded"
                "Requests that have begun to arrive may occupy any amount of memory together."
                [Server("resp::bounds::")]
            TransactionsFree "transactions-free"
                "Open transactions do not count among what connections keep."
                [Server("resp::bounds::")]
            NobodySendsMuch "nobody-sends-much"
                "A request of any length is read before anybody has signed in."
                [Server("resp::bounds::")]
            TurnWithoutEnd "turn-without-end"
                "A client that asks for long work is served until all of it is done."
                [Server("resp::bounds::long_work")]
            AsideGivenUp "aside-given-up"
                "Long work for which other threads leave no processor is given up."
                [InServer("runtime::")]
            LongLabels "long-labels"
                "Each line of the metrics tells the whole name of its queue, however long it is."
                [InServer("doors::http::metrics::labels::")]
            NobodyMayStay "nobody-may-stay"
                "A connection on which nobody signs in stays for ever."
                [Server("resp::bounds::")]
        }
    };
}
