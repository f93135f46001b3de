//! The bugs about bytes on the wire, of every protocol.

/// Lists these bugs, and those of tubes, after others.
macro_rules! with_those_of_the_wire {
    ($($others:tt)*) => {
        with_those_of_tubes! {
            $($others)*
            RespLineUnbounded "resp-line-unbounded"
                "An inline command may be of any length."
                [Wire("resp_requests::an_endless_line")]
            RespListUnbounded "resp-list-unbounded"
                "A command may announce any number of arguments."
                [Wire("resp_requests::other_limits")]
            RespSkipsTwoShort "resp-skips-two-short"
                "Skipping an argument that is too large forgets the two bytes of its line end."
                [Wire("resp_requests::streams_are_read")]
            PacketLengthCut "packet-length-cut"
                "A payload that is too long for a packet is sent with its length cut to 16 bits."
                [Wire("replies::packets_refuse")]
            PacketsNotCounted "packets-not-counted"
                "The packets of a reply are not counted down."
                [Wire("replies::chunks_of_every_size")]
            BeanstalkdLineUnbounded "beanstalkd-line-unbounded"
                "A line of beanstalkd may be of any length."
                [Wire("beanstalkd_requests::an_endless_line")]
            BeanstalkdLineEndHalved "beanstalkd-line-end-halved"
                "The end of a line that is too long is not found if it arrives in two pieces."
                [Wire("beanstalkd_requests::a_line_has_at_most")]
            BeanstalkdSkipsTwoShort "beanstalkd-skips-two-short"
                "Skipping a job that is too big forgets the two bytes of its line end."
                [Wire("beanstalkd_requests::a_job_that_is_too_big")]
            BeanstalkdShortestWord "beanstalkd-shortest-word"
                "A line of beanstalkd is the command with the shortest word that it begins with."
                [Wire("beanstalkd_requests::every_command")]
            BeanstalkdBodyEndUnchecked "beanstalkd-body-end-unchecked"
                "Any two bytes may follow the body of a job."
                [Wire("beanstalkd_requests::a_body_must_end")]
        }
    };
}
