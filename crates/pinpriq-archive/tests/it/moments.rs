//! Which mark has the state at a moment, and what is said if none has.

use pinpriq_archive::line::{Line, Parent};
use pinpriq_archive::mark::{Knows, Objects, Part, ShardMark};
use pinpriq_archive::memory::MemoryPlace;
use pinpriq_archive::{
    ArchiveError, By, Catalogue, Choice, ErrorKind, LineId, Mark, Place as _, Range, Until, Why,
};
use pinpriq_proto::time::{Span, Timestamp};

/// A mark of a line with one shard.
pub(crate) fn mark(number: u64, line: u64, (since_ms, at_ms): (u64, u64)) -> Mark {
    let objects = vec![Objects { first: number, last: number, object: 0 }];
    let shard = ShardMark {
        whole: Vec::new(),
        parts: vec![Part { number: 1, incarnation: 1, bytes: 8_192, head: 7, objects }],
        incarnation: 1,
        last_number: 9,
        since_ms,
    };
    Mark {
        format: 1,
        number,
        line: LineId(line),
        by: By::Backup,
        at_ms,
        since_ms,
        shards: vec![shard],
        highest: vec![Knows { incarnation: 1, last_number: 9 }],
        latest_ms: at_ms,
    }
}

/// A place with marks: for each its line, and from when to when it reaches.
fn place(of: &[(u64, (u64, u64))]) -> MemoryPlace {
    let place = MemoryPlace::new();
    for (number, (line, reach)) in (1..).zip(of) {
        let name = format!("marks/000000000/{number:03}");
        place.create(&name, &mark(number, *line, *reach).encode()).unwrap();
    }
    place
}

fn choose(
    place: &MemoryPlace,
    line: Option<u64>,
    until: Until,
) -> Result<(u64, u64, Why), ArchiveError> {
    let chosen = Catalogue::read(place)?.choose(line.map(LineId), until);
    chosen.map(|Choice { mark, until, why }| (mark.number, until.ms(), why))
}

const fn at(ms: u64) -> Until {
    Until::At(Timestamp::from_ms(ms))
}

#[test]
fn the_newest_mark_that_has_a_moment_is_chosen() {
    let place = place(&[(1, (10, 20)), (1, (15, 30)), (1, (40, 50)), (1, (60, 60))]);
    let table = [
        (Until::Latest, (4, 60, Why::Latest)),
        (at(61), (4, 60, Why::Latest)),
        (at(60), (4, 60, Why::Exact)),
        (at(59), (3, 50, Why::BeforeGap)),
        (at(50), (3, 50, Why::Exact)),
        (at(40), (3, 40, Why::Exact)),
        (at(39), (2, 30, Why::BeforeGap)),
        (at(18), (2, 18, Why::Exact)),
        (at(14), (1, 14, Why::Exact)),
        (at(10), (1, 10, Why::Exact)),
        (Until::Before(Span::from_ms(0)), (4, 60, Why::Exact)),
        (Until::Before(Span::from_ms(1)), (3, 50, Why::BeforeGap)),
        (Until::Before(Span::from_ms(15)), (3, 45, Why::Exact)),
    ];
    for (until, expected) in table {
        assert_eq!(choose(&place, None, until).unwrap(), expected, "{until:?}");
    }
    for until in [at(9), at(0), Until::Before(Span::MAX)] {
        let refused = choose(&place, None, until).unwrap_err();
        assert!(matches!(refused, ArchiveError::BeforeFirst { first, .. } if first.ms() == 10));
        assert_eq!(refused.kind(), ErrorKind::NothingThere);
    }
}

#[test]
fn each_line_has_its_own_moments() {
    let place = place(&[(1, (10, 20)), (2, (15, 40)), (1, (25, 50)), (2, (42, 44))]);
    assert_eq!(choose(&place, None, Until::Latest).unwrap(), (4, 44, Why::Latest));
    assert_eq!(choose(&place, Some(1), Until::Latest).unwrap(), (3, 50, Why::Latest));
    assert_eq!(choose(&place, Some(1), at(22)).unwrap(), (1, 20, Why::BeforeGap));
    assert_eq!(choose(&place, None, at(41)).unwrap(), (2, 40, Why::BeforeGap));
    assert_eq!(
        choose(&place, Some(1), Until::Before(Span::from_ms(30))).unwrap(),
        (1, 20, Why::Exact)
    );
    let refused = choose(&place, Some(3), Until::Latest).unwrap_err();
    assert!(matches!(refused, ArchiveError::NoLine { line: LineId(3), .. }), "{refused}");
    assert_eq!(refused.kind(), ErrorKind::NothingThere);
}

#[test]
fn a_place_without_marks_is_empty() {
    let place = MemoryPlace::new();
    place.create("marks/000000000/abc", b"no mark").unwrap();
    let refused = Catalogue::read(&place).map(|_| ()).unwrap_err();
    assert!(matches!(refused, ArchiveError::Empty { .. }), "{refused}");
    assert_eq!(refused.kind(), ErrorKind::NothingThere);
}

#[test]
fn a_damaged_mark_hides_only_what_it_may_have() {
    let place = place(&[(1, (10, 20)), (1, (30, 40)), (1, (50, 60))]);
    let name = "marks/000000000/003";
    let whole = place.get(name).unwrap().unwrap();
    place.put(name, whole[..whole.len() - 1].to_vec());
    for until in [Until::Latest, Until::Before(Span::from_ms(5)), at(45), at(70)] {
        for line in [None, Some(1)] {
            let refused = choose(&place, line, until).unwrap_err();
            assert_eq!(refused.kind(), ErrorKind::Damaged, "{until:?}");
        }
    }
    assert_eq!(choose(&place, None, at(35)).unwrap_err().kind(), ErrorKind::Damaged);
    assert_eq!(choose(&place, Some(1), at(35)).unwrap(), (2, 35, Why::Exact));
    // Of a newer format, which is not damage.
    let newer = Mark { format: 2, ..mark(3, 1, (50, 60)) };
    place.put(name, newer.encode());
    let refused = choose(&place, None, Until::Latest).unwrap_err();
    assert!(matches!(refused, ArchiveError::Newer { .. }), "{refused}");
    assert_eq!(refused.kind(), ErrorKind::Damaged);
    let mut catalogue = Catalogue::read(&place).unwrap();
    let lines = catalogue.lines().unwrap();
    assert_eq!((lines.len(), lines[0].marks, catalogue.damage().len()), (1, 2, 1));
}

/// Marks have names of their own, which must be theirs.
#[test]
fn a_mark_under_another_name_is_damaged() {
    let place = place(&[(1, (10, 20))]);
    place.put("marks/000000000/002", mark(1, 1, (10, 20)).encode());
    let refused = choose(&place, None, Until::Latest).unwrap_err();
    assert_eq!(refused.kind(), ErrorKind::Damaged);
}

#[test]
fn lines_are_listed_with_their_gaps() {
    let reaches = [(1, (10, 20)), (1, (15, 30)), (2, (12, 28)), (1, (40, 50)), (1, (50, 55))];
    let place = place(&reaches);
    let made = Line {
        format: 1,
        line: LineId(2),
        shards: 1,
        made_at_ms: 25,
        parent: Some(Parent { line: LineId(1), mark: 2, at_ms: 25 }),
        starts: vec![Knows { incarnation: 65_537, last_number: 1 << 36 }],
    };
    place.create("0000000000000002/line", &made.encode()).unwrap();
    let alone = Line { line: LineId(3), ..made.clone() };
    place.create("0000000000000003/line", &alone.encode()).unwrap();
    let lines = Catalogue::read(&place).unwrap().lines().unwrap();
    let names: Vec<u64> = lines.iter().map(|line| line.line.0).collect();
    assert_eq!(names, [3, 2, 1]);
    let range = |from, to, marks| Range {
        from: Timestamp::from_ms(from),
        to: Timestamp::from_ms(to),
        marks,
    };
    assert_eq!((lines[0].marks, lines[0].newest_mark, &lines[0].ranges[..]), (0, None, &[][..]));
    assert_eq!((lines[1].parent, lines[1].marks), (made.parent, 1));
    assert_eq!(lines[1].ranges, [range(12, 28, 1)]);
    assert_eq!((lines[2].parent, lines[2].newest_mark), (None, Some(5)));
    assert_eq!(lines[2].ranges, [range(10, 30, 2), range(40, 55, 2)]);
}

/// There may be more marks than one listing has.
#[test]
fn marks_are_found_through_several_blocks() {
    let place = MemoryPlace::new();
    for number in (1..3_000).step_by(7) {
        let name = format!("marks/{:09}/{:03}", number / 1_000, number % 1_000);
        let reach = (10 * number, 10 * number + 3);
        place.create(&name, &mark(number, 1, reach).encode()).unwrap();
    }
    assert_eq!(choose(&place, None, Until::Latest).unwrap().0, 2_997);
    assert_eq!(choose(&place, None, at(11)).unwrap(), (1, 11, Why::Exact));
    assert_eq!(choose(&place, None, at(10_030)).unwrap(), (1_002, 10_023, Why::BeforeGap));
}
