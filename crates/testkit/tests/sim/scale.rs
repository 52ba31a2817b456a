//! It holds a large cloud.

use std::time::Duration;

use futures::TryStreamExt;
use kupenstack_openstack::{Image, ImageFilter};
use kupenstack_testkit::sim::{self, Sim, SimOptions};
use tokio::sync::Mutex;

use crate::support::{admin, member};

/// What this process has computed so far, of all its threads: a bound that a busy machine does not break.
pub(crate) fn processor_millis() -> u64 {
    let stat = std::fs::read_to_string("/proc/self/stat").unwrap();
    let fields: Vec<&str> = stat.rsplit_once(')').unwrap().1.split_whitespace().collect();
    let ticks: u64 = fields[11].parse::<u64>().unwrap() + fields[12].parse::<u64>().unwrap();
    ticks * 10
}

/// Held by tests of this sort, which would be counted with each other.
pub(crate) static ALONE: Mutex<()> = Mutex::const_new(());

/// The memory that this process holds, in MB.
fn resident() -> u64 {
    let status = std::fs::read_to_string("/proc/self/status").unwrap();
    let line = status.lines().find(|line| line.starts_with("VmRSS:")).unwrap();
    line.split_whitespace().nth(1).unwrap().parse::<u64>().unwrap() / 1024
}

#[tokio::test]
async fn a_hundred_thousand_images_are_no_burden() {
    const IMAGES: usize = 100_000;
    const PROJECTS: usize = 1_000;
    let _alone = ALONE.lock().await;
    let sim = Sim::start(SimOptions { history: Duration::ZERO, ..SimOptions::default() });
    let admin = admin(&sim);
    let image = member(&sim, &admin, "shop").image();
    image.get("warm-up").await.unwrap();
    let before = processor_millis();
    let now = sim.clock().now();
    {
        let mut cloud = sim.cloud();
        for number in 0..IMAGES {
            let owner =
                if number % PROJECTS == 7 { "project-shop".to_owned() } else { format!("p{}", number % PROJECTS) };
            let mut image = sim::Image::new(format!("4f1ab1a4-0000-5000-8000-{number:012}"), &owner, now);
            image.name = Some(format!("image-{number}"));
            cloud.glance.put(now, image);
        }
    }
    let filled = processor_millis();
    println!("{} MB of memory with {IMAGES} images", resident());
    let list = async |filter| image.list(&filter).try_collect::<Vec<Image>>().await.unwrap();
    for _ in 0..20 {
        assert_eq!(list(ImageFilter::default()).await.len(), IMAGES / PROJECTS);
        let named = ImageFilter { name: Some("image-2007".to_owned()), ..ImageFilter::default() };
        assert_eq!(list(named).await.len(), 1);
        assert!(image.get("4f1ab1a4-0000-5000-8000-000000002007").await.unwrap().is_some());
    }
    let small = processor_millis();
    let all = admin.image().list(&ImageFilter::default()).try_fold(0, async |count, _| Ok(count + 1)).await.unwrap();
    assert_eq!(all, IMAGES);
    let whole = processor_millis();
    println!("ms: fill {}, 60 small reads {}, one whole list {}", filled - before, small - filled, whole - small);
    // in a build without optimisation, with the client's own share and that of other tests
    assert!(small - filled < 3_000, "{} ms for 60 small reads", small - filled);
    assert!(whole - before < 120_000, "{} ms in all", whole - before);
}
