//! robots.txt: asked once for each host, through the throttle, by RFC 9309 §2.3.1.
#![cfg(feature = "robots")]

use std::{
    convert::Infallible,
    pin::Pin,
    sync::{Arc, Mutex},
    task::{Context, Poll},
    time::Duration,
};

use autothrottle_tower::{BoxError, Error, Robots, Target, Throttle};
use http::{Request, Response};
use http_body_util::Full;
use serde_json::{Value, json};
use tokio::time::{Instant, advance, sleep, sleep_until};
use tower::{ServiceBuilder, ServiceExt, service_fn, util::BoxCloneSyncService};

type Body = Full<&'static [u8]>;
type Client = BoxCloneSyncService<Request<Body>, Response<Body>, BoxError>;

/// The requests: each URL, and after how many milliseconds.
type Asked = Arc<Mutex<Vec<(String, u128)>>>;

const FILE: &[u8] = b"User-agent: my-bot\nDisallow: /private\nCrawl-delay: 2\n\nUser-agent: *\nDisallow: /\n";

/// A client that keeps to robots.txt, of hosts that answer as their names say.
fn client(options: serde_json::Value) -> (Asked, Client) {
    let throttle = Throttle::new(options).unwrap();
    let asked = Asked::default();
    let (log, start) = (asked.clone(), Instant::now());
    let server = service_fn(move |request: Request<Body>| {
        let url = request.uri().to_string();
        let answer = Response::builder();
        let answer = match url.as_str() {
            "https://moved.example/robots.txt" => {
                answer.status(301).header("Location", "https://a.example/robots.txt").body(Body::default())
            }
            "https://none.example/robots.txt" => answer.status(404).body(Body::default()),
            "https://late.example/robots.txt" if start.elapsed() > Duration::from_secs(60 * 60) => {
                answer.status(429).body(Body::default())
            }
            "https://busy.example/robots.txt" => answer.status(429).body(Body::default()),
            "https://broken.example/robots.txt" => answer.status(500).body(Body::default()),
            url if url.ends_with("/robots.txt") => {
                assert_eq!(request.headers()["user-agent"], "my-bot/1.0");
                answer.body(Body::new(FILE))
            }
            _ => answer.body(Body::default()),
        };
        log.lock().unwrap().push((url, start.elapsed().as_millis()));
        async { Ok::<_, Infallible>(answer.unwrap()) }
    });
    let robots = Robots::new(&throttle, "my-bot/1.0");
    (asked, Client::new(ServiceBuilder::new().layer(robots).layer(throttle).service(server)))
}

async fn get(client: &Client, url: &str) -> Result<u16, Error> {
    let request = Request::get(url).body(Body::default()).unwrap();
    match client.clone().oneshot(request).await {
        Ok(response) => Ok(response.status().as_u16()),
        Err(error) => Err(*error.downcast().expect("an error of the throttle")),
    }
}

fn disallowed(url: &str, is_temporary: bool) -> Error {
    Error::Disallowed { url: url.into(), is_temporary }
}

#[tokio::test(start_paused = true)]
async fn a_host_is_asked_once_a_day_and_its_pace_is_kept() {
    let (asked, client) = client(json!({}));
    let both = tokio::join!(get(&client, "https://a.example/1"), get(&client, "https://a.example/2"));
    assert_eq!(both, (Ok(200), Ok(200)));
    let refused = get(&client, "https://a.example/private/x").await;
    assert_eq!(refused, Err(disallowed("https://a.example/private/x", false)));
    let log = asked.lock().unwrap().clone();
    let urls: Vec<&str> = log.iter().map(|(url, _)| url.as_str()).collect();
    assert_eq!(urls, ["https://a.example/robots.txt", "https://a.example/1", "https://a.example/2"]);
    assert_eq!(log[2].1 - log[1].1, 2000, "Crawl-delay: 2");
    advance(Duration::from_secs(25 * 60 * 60)).await;
    assert_eq!(get(&client, "https://a.example/3").await, Ok(200));
    assert_eq!(asked.lock().unwrap()[3].0, "https://a.example/robots.txt", "asked anew after a day");
}

#[tokio::test(start_paused = true)]
async fn no_file_is_no_rule_and_a_redirect_is_followed() {
    let (asked, client) = client(json!({}));
    assert_eq!(get(&client, "https://none.example/private").await, Ok(200));
    let refused = get(&client, "https://moved.example/private").await;
    assert_eq!(refused, Err(disallowed("https://moved.example/private", false)));
    assert_eq!(asked.lock().unwrap().last().unwrap().0, "https://a.example/robots.txt");
}

#[tokio::test(start_paused = true)]
async fn a_file_that_cannot_be_had_stops_its_host_for_a_minute() {
    let (asked, client) = client(json!({ "backoff": false }));
    assert_eq!(get(&client, "https://busy.example/").await, Err(disallowed("https://busy.example/", true)));
    asked.lock().unwrap().clear();
    let url = "https://broken.example/";
    for _ in 0..2 {
        assert_eq!(get(&client, url).await, Err(disallowed(url, true)));
    }
    assert_eq!(asked.lock().unwrap().len(), 1);
    advance(Duration::from_secs(61)).await;
    assert_eq!(get(&client, url).await, Err(disallowed(url, true)));
    assert_eq!(asked.lock().unwrap().len(), 2);
}

#[tokio::test(start_paused = true)]
async fn a_file_that_was_had_counts_until_the_next_one_is() {
    let (asked, client) = client(json!({ "backoff": false }));
    let (open, private) = ("https://late.example/", "https://late.example/private");
    for round in 1..3 {
        assert_eq!(get(&client, open).await, Ok(200), "{round}");
        assert_eq!(get(&client, private).await, Err(disallowed(private, false)), "{round}");
        let files = asked.lock().unwrap().iter().filter(|(url, _)| url.ends_with("/robots.txt")).count();
        assert_eq!(files, round);
        advance(Duration::from_secs(25 * 60 * 60)).await;
    }
}

/// A file in one piece, which may break off.
#[derive(Default)]
struct Text {
    bytes: Option<Vec<u8>>,
    breaks: bool,
}

impl http_body::Body for Text {
    type Data = bytes::Bytes;
    type Error = std::io::Error;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        _: &mut Context<'_>,
    ) -> Poll<Option<Result<http_body::Frame<bytes::Bytes>, std::io::Error>>> {
        let cut = || Err(std::io::ErrorKind::ConnectionReset.into());
        Poll::Ready(match self.bytes.take() {
            Some(bytes) => Some(Ok(http_body::Frame::data(bytes.into()))),
            None => std::mem::take(&mut self.breaks).then(cut),
        })
    }
}

fn told(answer: &Value) -> Response<Text> {
    let mut text = answer["text"].as_str().unwrap_or_default().to_owned();
    if let Some(length) = answer["pad"].as_u64() {
        text = format!("{text}#{}", "x".repeat(length as usize - text.len() - 1));
        text += answer["after"].as_str().unwrap();
    }
    let breaks = !text.is_empty() && answer["breaks"] == true;
    let body = Text { bytes: Some(text.into_bytes()), breaks };
    let mut response = Response::builder().status(answer["status"].as_u64().unwrap_or(200) as u16);
    if let Some(place) = answer["location"].as_str() {
        response = response.header("location", place);
    }
    response.body(body).unwrap()
}

async fn play(case: &Value) {
    let mut options = json!({ "defaults": { "delay": 1000, "jitter": false, "backoff": false } });
    if let Some(limit) = case["retry"].as_u64() {
        options["retry"] = json!({ "limit": limit });
        if case["methods"].is_array() {
            options["retry"]["methods"] = case["methods"].clone();
        }
    }
    let scope = case["scopes"].as_str();
    if let Some(scope) = scope {
        options["scopes"] = json!({ scope: { "delay": 0, "concurrency": 9 } });
    }
    let throttle = Throttle::new(options).unwrap();
    let (left, files) = (Arc::new(Mutex::new(Vec::new())), Arc::new(Mutex::new(0)));
    let (log, count, answers) = (left.clone(), files.clone(), case["robots"].as_array().unwrap().clone());
    let server = service_fn(move |request: Request<Text>| {
        let answer = if request.uri().path() == "/robots.txt" {
            let mut files = count.lock().unwrap();
            *files += 1;
            told(&answers[(*files - 1).min(answers.len() - 1)])
        } else {
            log.lock().unwrap().push(Instant::now());
            Response::new(Text::default())
        };
        async { Ok::<_, Infallible>(answer) }
    });
    let robots = Robots::new(&throttle, "bot");
    let client = ServiceBuilder::new().layer(robots).layer(throttle).service(server);
    let (start, name) = (Instant::now(), &case["name"]);
    let mut ended = Vec::new();
    for ask in case["asks"].as_array().unwrap() {
        sleep_until(start + Duration::from_millis(ask["at"].as_u64().unwrap())).await;
        let url = format!("https://a.example{}", ask["path"].as_str().unwrap());
        let mut request = Request::get(url).body(Text::default()).unwrap();
        if let Some(scope) = scope {
            request.extensions_mut().insert(Target::scope(scope));
        }
        let client = client.clone();
        ended.push((ask, tokio::spawn(async move { client.oneshot(request).await.is_ok() })));
        if case.get("gap").is_none() {
            sleep(Duration::from_secs(20)).await;
            assert!(ended.last().unwrap().1.is_finished(), "{name}: {ask}");
        }
    }
    for (ask, end) in ended {
        assert_eq!(end.await.unwrap(), !ask["leaves"].is_null(), "{name}: {ask}");
    }
    if let Some(gap) = case["gap"].as_u64() {
        let left = left.lock().unwrap();
        let gaps: Vec<_> = left.windows(2).map(|pair| (pair[1] - pair[0]).as_millis() as u64).collect();
        assert!(gaps.iter().all(|&found| found == gap), "{name}: {gaps:?}");
    }
    assert_eq!(*files.lock().unwrap() as u64, case["asked"].as_u64().unwrap(), "{name}");
}

/// JavaScript and Python play the same cases (`tests/js/robots-answers.test.ts`,
/// `python/tests/test_robots.py`).
#[tokio::test(start_paused = true)]
async fn a_host_answers() {
    for line in include_str!("../../tests/vectors/robots-answers.jsonl").lines() {
        play(&serde_json::from_str(line).unwrap()).await;
    }
}
